"""Random kernels that are written on tiles, the same for the same seed: products, reductions, moves, steps.

All numbers are small integers, of which every sum and product is exact in its type, in whichever order they are taken.
So two ways of computing a program give the same, to the bit. Some decisions about a kernel are drawn, too: stages of
steps, layouts, swizzles, places, copies, warps, clusters.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from xgpu.dtypes import dtype_named
from xgpu.target_machine import WARP_SIZE
from xgpu.tools.fuzzing.blocks.decisions import Decisions
from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile, Number

_SIZES = (1, 2, 3, 5, 8, 8, 11, 16, 16, 16, 17, 24, 32, 32, 40)
_TYPES = ("bf16", "bf16", "bf16", "f16", "f32", "f32", "i32", "i8", "f64")
_MOST_ELEMENTS = 1600
"""Elements of a tile, and products of an element's terms with it."""
_MOST_FACTOR = 6400
"""Elements of the second operand of a product of tiles: several have room in shared memory."""
_EXACT = {"bf16": 128, "f16": 1024, "f32": 1 << 22, "f64": 1 << 50, "i32": 1 << 30, "i8": 127}
"""Integers up to which sums in a type are exact."""
BOUND = 4
_INPUT_BOUND = 2


@dataclass(frozen=True)
class DrawnProgram:
    """A kernel's text, and its arguments."""

    text: str
    arguments: list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]


@dataclass
class _Scope:
    """Tiles that operations may use, those with the bounds of their numbers, at some numbers of block and step."""

    at: list[Number]
    tiles: list[DrawnTile] = field(default_factory=list)


def generate(seed: int) -> DrawnProgram:
    """Return the program of a seed."""
    return Generator(seed).program()


class Generator:
    """Draws a kernel, tile by tile."""

    def __init__(self, seed: int):
        self.random = random.Random(f"block {seed}")
        self._bounds: dict[str, int] = {}
        self._arrays: list[tuple[tuple[int, ...], str]] = []
        grid = tuple(self.random.choice((1, 2, 2, 3)) for _ in range(self.random.choice((1, 1, 2, 2, 3))))
        threads = self.random.choice((32, 64, 64, 128, 160, 256))
        self._decisions = Decisions(self.random, threads // WARP_SIZE)
        self._text = BlockText([], [], grid, threads, self._decisions.cluster(math.prod(grid)))
        self._begin(list(self._text.at))

    def _begin(self, at: list[Number]) -> None:
        """Begin with no tiles, at the numbers of the block."""
        self._scope = _Scope(at)

    def _last(self) -> DrawnTile:
        """Return the tile that was made last."""
        return self._scope.tiles[-1]

    def program(self) -> DrawnProgram:
        """Write the program."""
        for _ in range(self.random.randint(1, 2)):
            self._read(self._shape())
        self._grow(self.random.randint(0, 3))
        for _ in range(self.random.choice((0, 1, 1, 1, 2))):
            self._steps()
            self._grow(self.random.randint(0, 3))
        self._grow(1)
        return self._finished()

    def _finished(self) -> DrawnProgram:
        """Write some tiles into outputs, and draw the arguments."""
        for tile in self._results():
            self._write(tile)
        values = np.random.default_rng(self.random.randrange(1 << 30))
        arguments = [_numbers(values, shape, element) for shape, element in self._arrays]
        return DrawnProgram(self._text.text(), arguments)

    def _results(self) -> list[DrawnTile]:
        last = self._scope.tiles[-1]
        others = [each for each in self._scope.tiles[:-1] if self.random.random() < 0.15]
        return [*others[-2:], last]

    def _shape(self) -> tuple[int, ...]:
        while True:
            shape = tuple(self.random.choice(_SIZES) for _ in range(self.random.choice((1, 2, 2, 2, 3))))
            if math.prod(shape) <= _MOST_ELEMENTS:
                return shape

    def _element(self) -> str:
        return self.random.choice(_TYPES)

    def _note(self, tile: DrawnTile, bound: int) -> DrawnTile:
        self._bounds[tile.name] = bound
        self._scope.tiles.append(tile)
        return tile

    def _bound(self, tile: DrawnTile) -> int:
        return self._bounds[tile.name]

    def _pick(self, accepts: Callable[[DrawnTile], bool] = lambda _: True) -> DrawnTile | None:
        found = [each for each in self._scope.tiles if accepts(each)]
        return self.random.choice(found[-6:]) if found else None

    def _read(self, shape: tuple[int, ...], element: str | None = None) -> DrawnTile:
        """Read a tile of a new array, along some of whose dimensions blocks and steps have one after the other."""
        element = element or self._element()
        numbers = [each for each in self._scope.at if self.random.random() < 0.7]
        self.random.shuffle(numbers)
        leading = numbers[len(shape) :]
        own: list[Number | None] = [*numbers[: len(shape)]]
        own += [None] * (len(shape) - len(own))
        self.random.shuffle(own)
        whole = [each.count for each in leading]
        for size, number in zip(shape, own, strict=True):
            reached = size * (1 if number is None else number.count)
            whole.append(max(1, reached - self._cut(size, number)))
        self._arrays.append((tuple(whole), element))
        self._text.add_input(tuple(whole), element)
        dropped = range(len(leading))
        at: list[Number | None] = [*leading, *own]
        given = self._decisions.of_read(shape, element, len(self._scope.at) > len(self._text.at))
        tile = self._text.tile(len(self._arrays) - 1, at, [1] * len(leading) + list(shape), list(dropped), given)
        return self._note(tile, _INPUT_BOUND)

    def _cut(self, size: int, number: Number | None) -> int:
        """Return by how much an array is smaller than its tiles."""
        if number is None and self.random.random() < 0.8:
            return 0
        return self.random.choice((0, 0, 1, size // 2, self.random.randrange(size)))

    def _write(self, tile: DrawnTile) -> None:
        """Write a tile into a new output, in which each block has its place."""
        numbers = list(self._text.at)
        self.random.shuffle(numbers)
        leading, own = numbers[len(tile.shape) :], [*numbers[: len(tile.shape)]]
        at: list[Number | None] = [*own, *[None] * (len(tile.shape) - len(own))]
        self.random.shuffle(at)
        whole = [each.count for each in leading]
        for size, number in zip(tile.shape, at, strict=True):
            reached = size * (1 if number is None else number.count)
            whole.append(max(1, reached - self._cut(size, number)))
        output = self._text.add_output(tuple(whole), tile.element)
        self._text.insert(tile, output, [*leading, *at], list(range(len(leading))))

    def _grow(self, count: int) -> None:
        for _ in range(count):
            for _ in range(20):
                step = self.random.choice(_STEPS)
                tile = self._pick()
                if tile is None:
                    self._read(self._shape())
                elif step(self, tile):
                    break

    def _steps(self) -> None:
        """Write steps that carry sums of what their bodies compute, or the largest of it."""
        count = self._count()
        outer = self._scope
        before = len(outer.tiles)
        kinds = self._kinds()
        shapes = [(self._shape(), self._element()) for _ in kinds]
        inits, plans = [], []
        for kind, (shape, element) in zip(kinds, shapes, strict=True):
            plan = self._plan(kind, shape, element)
            init = self._text.constant(_number(plan[2], plan[1]), plan[0], plan[1])
            self._bounds[init.name] = 0
            inits.append(init)
            plans.append(plan)
        self._decisions.begin_steps()
        with self._text.steps(count, inits) as steps:
            self._scope = _Scope([*outer.at, steps.number], list(outer.tiles[:before]))
            for (_, _, largest, make), carried in zip(plans, steps.carried, strict=True):
                self._bounds[carried.name] = BOUND
                self._scope.tiles.append(carried)
                made = make()
                name = "maximum" if largest else "add"
                yielded = self._text.map(name, carried, made)
                if self.random.random() < 0.3:
                    yielded = self._text.map("multiply", yielded, self._splat(yielded, self.random.choice((1, -1))))
                steps.yielded.append(yielded)
            steps.given = self._decisions.of_steps(len(inits))
        self._scope = outer
        for tile in steps.results:
            exact = tile if tile.element == "i8" else self._clamped(tile)
            self._note(exact, BOUND)

    def _count(self) -> int:
        """Return how many steps there are."""
        return self.random.choice((1, 2, 2, 3, 4, 5))

    def _kinds(self) -> list[str]:
        """Return what each value is that steps carry."""
        bodies = self.random.randint(1, 2)
        return [self.random.choice(("product", "product", "reduce", "any")) for _ in range(bodies)]

    def _terms(self) -> int:
        """Return how many terms the sums of a product have."""
        return self.random.choice(_SIZES)

    def _plan(
        self, kind: str, shape: tuple[int, ...], element: str
    ) -> tuple[tuple[int, ...], str, bool, Callable[[], DrawnTile]]:
        """Return the shape and the type of what steps carry, whether it is the largest, and what makes a step's."""
        if kind == "product":
            rows, columns = (self.random.choice(_SIZES) for _ in range(2))
            total = _total(element)
            return (rows, columns), total, False, lambda: self._product_of(rows, columns, element)
        if kind == "reduce":
            dimension = self.random.randrange(len(shape))
            kept = tuple(size for d, size in enumerate(shape) if d != dimension)
            largest = self.random.random() < 0.5
            return kept, element, largest, lambda: self._reduced(self._read(shape, element), [dimension], largest)
        return shape, element, self.random.random() < 0.5, lambda: self._varied(self._read(shape, element))

    def _varied(self, tile: DrawnTile) -> DrawnTile:
        """Return a tile of the same type, of more operations."""
        made = self._elementwise(tile) if self.random.random() < 0.6 else None
        fits = made is not None and (made.shape, made.element) == (tile.shape, tile.element)
        return self._clamped(made) if fits and made is not None else tile

    def _product_of(self, rows: int, columns: int, element: str) -> DrawnTile:
        terms = self._terms()
        sides = [(rows, terms), (terms, columns)]
        turned = [self.random.random() < 0.3 for _ in sides]
        tiles = [
            self._varied(self._read(side[::-1] if turn else side, element))
            for side, turn in zip(sides, turned, strict=True)
        ]
        contracted = ((0,) if turned[0] else (1,), (1,) if turned[1] else (0,))
        given = self._decisions.of_product()
        made = self._text.dot(tiles[0], tiles[1], contracted, element=_total(element), given=given)
        return self._note(made, terms * BOUND * BOUND)

    def _splat(self, like: DrawnTile, value: int) -> DrawnTile:
        made = self._text.constant(_text_of(value, like.element), like.shape, like.element)
        self._bounds[made.name] = abs(value)
        return made

    def _clamped(self, tile: DrawnTile, bound: int = BOUND) -> DrawnTile:
        """Return a tile's numbers, no larger than a bound."""
        if self._bounds.get(tile.name, bound + 1) <= bound:
            return tile
        above = self._text.map("maximum", tile, self._splat(tile, -bound))
        made = self._text.map("minimum", above, self._splat(tile, bound))
        self._bounds[made.name] = bound
        return made

    def _elementwise(self, tile: DrawnTile) -> DrawnTile | None:
        """Add an operation on single elements."""
        name = self.random.choice(("add", "subtract", "multiply", "maximum", "minimum", "negate", "abs", "select"))
        if name in ("negate", "abs"):
            given = self._decisions.of_operation(tile.shape)
            return self._note(self._text.map(name, tile, attributes=given), self._bound(tile))
        other = self._pick(lambda each: each.element == tile.element and each.shape == tile.shape)
        other = other if other is not None and self.random.random() < 0.7 else self._other(tile)
        tile, other = self._clamped(tile), self._clamped(other)
        if name == "select":
            direction = self.random.choice(("LT", "GE", "EQ"))
            described = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
            chosen = self._text.op("compare", [tile, other], tile.shape, "i1", described)
            made = self._text.op("select", [chosen, tile, other], tile.shape, tile.element)
            return self._note(made, BOUND)
        bound = BOUND * BOUND if name == "multiply" else 2 * BOUND
        given = self._decisions.of_operation(tile.shape)
        return self._note(self._text.map(name, tile, other, attributes=given), bound)

    def _other(self, tile: DrawnTile) -> DrawnTile:
        """Return a second operand: a constant, numbers of elements, or a broadcast of a smaller tile."""
        kind = self.random.choice(("constant", "iota", "broadcast", "read"))
        if kind == "constant":
            return self._splat(tile, self.random.randint(-3, 3))
        if kind == "iota":
            dimension = self.random.randrange(len(tile.shape)) if tile.shape else 0
            if not tile.shape:
                return self._splat(tile, 1)
            made = self._text.op("iota", [], tile.shape, tile.element, f"iota_dimension = {dimension} : i64")
            self._bounds[made.name] = max(_SIZES) * 4
            return made
        if kind == "broadcast" and tile.shape:
            dimension = self.random.randrange(len(tile.shape))
            part = self._read((tile.shape[dimension],), tile.element)
            made = self._text.broadcast(part, tile.shape, [dimension])
            self._bounds[made.name] = _INPUT_BOUND
            return made
        return self._read(tile.shape, tile.element) if tile.shape else self._splat(tile, 2)

    def _product(self, tile: DrawnTile) -> DrawnTile | None:
        """Add a product with another tile, of which one may be transposed, or of batches."""
        if len(tile.shape) not in (1, 2, 3) or tile.element not in (*_EXACT,):
            return None
        batches = len(tile.shape) - 2 if len(tile.shape) == 3 else 0
        axis = self.random.randrange(batches, len(tile.shape))
        terms, columns = tile.shape[axis], self.random.choice(_SIZES)
        rest = math.prod(tile.shape) // terms
        if rest * columns > _MOST_ELEMENTS or rest * columns * terms > 40 * _MOST_ELEMENTS:
            return None
        batch = tile.shape[:batches]
        if math.prod(batch) * terms * columns > _MOST_FACTOR:
            return None
        is_turned = self.random.random() < 0.4
        shape = (*batch, columns, terms) if is_turned else (*batch, terms, columns)
        right = self._varied(self._read(shape, tile.element))
        which = tuple(range(batches))
        left = self._clamped(tile)
        element = self.random.choice((_total(tile.element), tile.element)) if tile.element != "i8" else "i32"
        made = self._text.dot(
            left,
            right,
            ((axis,), (batches + 1 if is_turned else batches,)),
            (which, which),
            element,
            self.random.choice(("DEFAULT", "DEFAULT", "HIGHEST")),
            self._decisions.of_product(),
        )
        return self._clamped_later(made, terms * BOUND * BOUND)

    def _clamped_later(self, tile: DrawnTile, bound: int) -> DrawnTile:
        """Note a tile, or its numbers without the large ones if sums of these would not be exact."""
        self._bounds[tile.name] = bound
        made = tile if bound * 4 < _EXACT.get(tile.element, 0) else self._clamped(tile)
        return self._note(made, self._bound(made))

    def _reduction(self, tile: DrawnTile) -> DrawnTile | None:
        if not tile.shape:
            return None
        count = self.random.choice((1, 1, 1, 2))
        dimensions = sorted(self.random.sample(range(len(tile.shape)), min(count, len(tile.shape))))
        return self._note(self._reduced(tile, dimensions, self.random.random() < 0.5), self._bounds["reduced"])

    def _reduced(self, tile: DrawnTile, dimensions: list[int], largest: bool) -> DrawnTile:
        terms = math.prod(tile.shape[d] for d in dimensions)
        bound = BOUND if largest or terms * BOUND < _EXACT[tile.element] else max(1, _EXACT[tile.element] // terms)
        tile = self._clamped(tile, min(BOUND, bound))
        name = self.random.choice(("maximum", "minimum")) if largest else "add"
        init = self._text.constant(_text_of(self.random.randint(-1, 1), tile.element), (), tile.element)
        made = self._text.reduce(name, tile, init, dimensions)
        self._bounds["reduced"] = self._bounds[made.name] = BOUND if largest else terms * BOUND + 1
        return self._clamped(made)

    def _move(self, tile: DrawnTile) -> DrawnTile | None:
        """Add an operation that moves elements."""
        bound, rank = self._bound(tile), len(tile.shape)
        kind = self.random.choice(("transpose", "reshape", "slice", "pad", "concatenate", "reverse", "broadcast"))
        if not rank or math.prod(tile.shape) > _MOST_ELEMENTS // 2:
            return None
        if kind == "transpose":
            order = self.random.sample(range(rank), rank)
            return self._note(self._text.transpose(tile, order), bound)
        if kind == "reshape":
            shape = self.random.choice(((math.prod(tile.shape),), (*tile.shape, 1), (1, *tile.shape[::-1])))
            return self._note(self._text.op("reshape", [tile], shape, tile.element), bound)
        if kind == "slice":
            return self._note(self._sliced(tile), bound)
        if kind == "pad":
            low, high, between = ([self.random.choice((0, 0, 1, 3)) for _ in range(rank)] for _ in range(3))
            between = [each % 2 for each in between]
            pairs = zip(tile.shape, low, high, between, strict=True)
            shape = tuple(size + a + b + (size - 1) * c for size, a, b, c in pairs)
            value = self._text.constant(_text_of(-1, tile.element), (), tile.element)
            parts = (("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", between))
            described = ", ".join(f"{name} = array<i64: {', '.join(map(str, each))}>" for name, each in parts)
            return self._note(self._text.op("pad", [tile, value], shape, tile.element, described), max(bound, 1))
        axis = self.random.randrange(rank)
        if kind == "concatenate":
            other = self._sliced(tile) if self.random.random() < 0.3 else tile
            if any(other.shape[d] != tile.shape[d] for d in range(rank) if d != axis):
                return None
            shape = tuple(size + (other.shape[axis] if d == axis else 0) for d, size in enumerate(tile.shape))
            described = f"dimension = {axis} : i64"
            return self._note(self._text.op("concatenate", [tile, other], shape, tile.element, described), bound)
        if kind == "reverse":
            described = f"dimensions = array<i64: {axis}>"
            return self._note(self._text.op("reverse", [tile], tile.shape, tile.element, described), bound)
        size = self.random.choice((2, 3))
        return self._note(self._text.broadcast(tile, (*tile.shape, size), list(range(rank))), bound)

    def _sliced(self, tile: DrawnTile) -> DrawnTile:
        starts = [self.random.randrange(size) for size in tile.shape]
        steps = [self.random.choice((1, 1, 2)) for _ in tile.shape]
        ends = [self.random.randint(start + 1, size) for start, size in zip(starts, tile.shape, strict=True)]
        shape = [-(-(end - start) // step) for start, end, step in zip(starts, ends, steps, strict=True)]
        parts = (("start_indices", starts), ("limit_indices", ends), ("strides", steps))
        described = ", ".join(f"{name} = array<i64: {', '.join(map(str, each))}>" for name, each in parts)
        made = self._text.op("slice", [tile], shape, tile.element, described)
        self._bounds[made.name] = self._bound(tile)
        return made

    def _conversion(self, tile: DrawnTile) -> DrawnTile | None:
        element = self.random.choice(_TYPES)
        if element == tile.element:
            return None
        clamped = self._clamped(tile)
        return self._note(self._text.convert(clamped, element), BOUND)


_STEPS: tuple[Callable[[Generator, DrawnTile], DrawnTile | None], ...] = (
    Generator._elementwise,
    Generator._elementwise,
    Generator._elementwise,
    Generator._product,
    Generator._product,
    Generator._reduction,
    Generator._move,
    Generator._move,
    Generator._conversion,
)


def _total(element: str) -> str:
    """Return the type of sums of products."""
    return {"bf16": "f32", "f16": "f32", "i8": "i32"}.get(element, element)


def _text_of(value: int, element: str) -> str:
    return str(value) if element.startswith("i") else f"{value}.0"


def _number(largest: bool, element: str) -> str:
    return _text_of(-BOUND if largest else 0, element)


def _numbers(
    values: np.random.Generator, shape: tuple[int, ...], element: str
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    numbers = values.integers(-_INPUT_BOUND, _INPUT_BOUND + 1, shape)
    name = {"i8": "s8", "i32": "s32"}.get(element, element)
    return numbers.astype(dtype_named(name).numpy)
