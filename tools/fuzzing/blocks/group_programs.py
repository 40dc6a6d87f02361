"""Random kernels whose products are of tiles that warp groups multiply, the same for the same seed.

What follows these has numbers for each row, too: largest ones and sums, which steps carry, and which are put into what
is computed of the rows' elements, as in a softmax.
"""

import random
from collections.abc import Callable

from xgpu.target_machine import WARP_SIZE
from xgpu.tools.fuzzing.blocks.decisions import Decisions
from xgpu.tools.fuzzing.blocks.programs import BOUND, DrawnProgram, Generator
from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile

_ROWS, _COLUMNS, _TERMS = (32, 64, 64, 64, 64, 128), (8, 20, 24, 32, 40, 64, 96), (16, 16, 32, 48, 64)
_STEPS = (1, 2, 3, 8, 9)


def generate(seed: int) -> DrawnProgram:
    """Return the program of a seed."""
    return _GroupGenerator(seed).program()


class _GroupGenerator(Generator):
    """Draws products of 64 rows for each warp group, whose results are multiplied again, or added up in steps.

    Sometimes rows are fewer, or columns no multiple of 8, and warps multiply.
    """

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
        total = self._pick(lambda each: len(each.shape) == 2)
        if total is not None and self.random.random() < 0.5:
            element = self.random.choice(("bf16", "f16"))
            left = self._text.convert(self._clamped(total), element)
            terms, columns = total.shape[1], self.random.choice(_COLUMNS)
            right = self._read((terms, columns), element)
            given = self._decisions.of_product()
            made = self._text.dot(left, right, ((1,), (0,)), element="f32", given=given)
            self._note(self._clamped_later(made, terms * BOUND * BOUND), BOUND)
        self._grow_around(self._pick(lambda each: len(each.shape) == 2))
        return self._finished()

    def _grow_around(self, tile: DrawnTile | None) -> None:
        """Have the sum or the largest of rows computed of a tile, too, perhaps, and put into the rows again."""
        if tile is None or self.random.random() < 0.5:
            return
        rows = self._note(self._reduced(tile, [1], self.random.random() < 0.5), BOUND)
        if self.random.random() < 0.5:
            rows = self._elementwise(rows) or rows
        if self.random.random() < 0.7:
            wide = self._text.broadcast(self._clamped(rows), tile.shape, [0])
            name = self.random.choice(("add", "subtract", "maximum"))
            self._note(self._text.map(name, self._clamped(tile), wide), 2 * BOUND)

    def _count(self) -> int:
        return self.random.choice(_STEPS)

    def _kinds(self) -> list[str]:
        return self.random.choice((["product"], ["product"] * 2, ["rows", "product"], ["rows"], ["product", "rows"]))

    def _plan(
        self, kind: str, shape: tuple[int, ...], element: str
    ) -> tuple[tuple[int, ...], str, bool, Callable[[], DrawnTile]]:
        rows, columns = self.random.choice(_ROWS), self.random.choice(_COLUMNS)
        taken = self.random.choice(("bf16", "bf16", "f16"))
        if kind == "rows":
            largest = self.random.random() < 0.5
            return (rows,), "f32", largest, lambda: self._of_rows((rows, columns), taken, largest)
        return (rows, columns), "f32", False, lambda: self._product_of(rows, columns, taken)

    def _of_rows(self, shape: tuple[int, int], taken: str, largest: bool) -> DrawnTile:
        """Return the sum or the largest of each row of a product, perhaps with what steps carry of rows in it."""
        made = self._product_of(*shape, taken)
        rows = self._pick(lambda each: each.shape == shape[:1] and each.element == made.element)
        if rows is not None and self.random.random() < 0.5:
            made = self._text.map(
                "subtract", self._clamped(made), self._text.broadcast(self._clamped(rows), shape, [0])
            )
            self._note(made, 2 * BOUND)
        return self._reduced(made, [1], largest)

    def _terms(self) -> int:
        return self.random.choice(_TERMS)
