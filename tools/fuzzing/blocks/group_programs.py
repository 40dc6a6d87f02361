"""Random kernels whose products are of tiles that warp groups multiply, the same for the same seed."""

import random
from collections.abc import Callable

from xgpu.target_machine import WARP_SIZE
from xgpu.tools.fuzzing.blocks.decisions import Decisions
from xgpu.tools.fuzzing.blocks.programs import BOUND, DrawnProgram, Generator
from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile

_ROWS, _COLUMNS, _TERMS = (64, 64, 64, 128), (8, 24, 32, 40, 64, 96), (16, 16, 32, 48, 64)
_STEPS = (1, 2, 3, 8, 9)


def generate(seed: int) -> DrawnProgram:
    """Return the program of a seed."""
    return _GroupGenerator(seed).program()


class _GroupGenerator(Generator):
    """Draws products of 64 rows for each warp group, whose results are multiplied again, or added up in steps."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.random = random.Random(f"warp groups {seed}")
        grid = tuple(self.random.choice((1, 1, 2)) for _ in range(self.random.choice((1, 2))))
        threads = self.random.choice((128, 128, 256))
        self._decisions = Decisions(self.random, threads // WARP_SIZE)
        self._text = BlockText([], [], grid, threads)
        self._begin(list(self._text.at))

    def program(self) -> DrawnProgram:
        """Write the program: steps, and perhaps a product of what they add up."""
        self._steps()
        if self.random.random() < 0.5:
            total = self._last()
            element = self.random.choice(("bf16", "f16"))
            left = self._text.convert(self._clamped(total), element)
            terms, columns = total.shape[1], self.random.choice(_COLUMNS)
            right = self._read((terms, columns), element)
            given = self._decisions.of_product()
            made = self._text.dot(left, right, ((1,), (0,)), element="f32", given=given)
            self._note(self._clamped_later(made, terms * BOUND * BOUND), BOUND)
        self._grow_around(self._last())
        return self._finished()

    def _grow_around(self, tile: DrawnTile) -> None:
        """Have the sum of rows computed of a tile, too, perhaps."""
        if self.random.random() < 0.3:
            self._note(self._reduced(tile, [1], self.random.random() < 0.5), BOUND)

    def _count(self) -> int:
        return self.random.choice(_STEPS)

    def _kinds(self) -> list[str]:
        return ["product"] * self.random.choice((1, 1, 2))

    def _plan(
        self, kind: str, shape: tuple[int, ...], element: str
    ) -> tuple[tuple[int, ...], str, bool, Callable[[], DrawnTile]]:
        rows, columns = self.random.choice(_ROWS), self.random.choice(_COLUMNS)
        taken = self.random.choice(("bf16", "bf16", "f16"))
        return (rows, columns), "f32", False, lambda: self._product_of(rows, columns, taken)

    def _terms(self) -> int:
        return self.random.choice(_TERMS)
