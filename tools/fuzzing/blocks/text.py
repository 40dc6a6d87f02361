"""Writes the text of kernels of level ``tiles``, of the emitter ``block``: what tests and the fuzzer are made of."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DrawnTile:
    """A tile, or a scalar: its name, its shape, and the type of its elements."""

    name: str
    shape: tuple[int, ...]
    element: str

    @property
    def type(self) -> str:
        """Its type as text."""
        return tensor(self.shape, self.element)


@dataclass(frozen=True)
class Number:
    """A number of block or step, of which there are ``count``."""

    name: str
    count: int


@dataclass
class Steps:
    """Steps that are being written: their number, and what they carry."""

    number: Number
    carried: list[DrawnTile]
    given: str = ""
    """Decisions about them, as further attributes."""
    yielded: list[DrawnTile] = field(default_factory=list)
    results: list[DrawnTile] = field(default_factory=list)


def tensor(shape: Sequence[int], element: str) -> str:
    """Return the type of an array."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


class BlockText:
    """The text of one kernel, written operation by operation; arrays are pairs of a shape and a type of elements."""

    def __init__(
        self,
        inputs: Sequence[tuple[Sequence[int], str]],
        outputs: Sequence[tuple[Sequence[int], str]],
        grid: Sequence[int],
        threads: int = 128,
        cluster: int = 1,
    ):
        self.inputs: list[DrawnTile] = []
        self.outputs: list[DrawnTile] = []
        for shape, element in inputs:
            self.add_input(shape, element)
        self.grid, self.threads, self.cluster = tuple(grid), threads, cluster
        self.at = [Number(f"%b{n}", count) for n, count in enumerate(grid)]
        self._written: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        for shape, element in outputs:
            self.add_output(shape, element)

    def add_input(self, shape: Sequence[int], element: str) -> int:
        """Add an input, and return its number."""
        self.inputs.append(DrawnTile(f"%i{len(self.inputs)}", tuple(shape), element))
        return len(self.inputs) - 1

    def add_output(self, shape: Sequence[int], element: str) -> int:
        """Add an output, and return its number."""
        number = len(self.outputs)
        self.outputs.append(DrawnTile(f"%a{number}", tuple(shape), element))
        self._written.append(f"%o{number}")
        return number

    def tile(
        self,
        array: int,
        at: Sequence[Number | None],
        shape: Sequence[int],
        dropped: Sequence[int] = (),
        given: str = "",
    ) -> DrawnTile:
        """Read a tile of an input: along each dimension the one of a number, the first one where there is none.

        Dimensions that are ``dropped``, of one element, are none of the tile.
        """
        source = self.inputs[array]
        numbers = [each for each in at if each is not None]
        kept = tuple(size for d, size in enumerate(shape) if d not in dropped)
        map_ = _map(source.shape, at, shape, dropped)
        types = ", ".join([source.type, *("index" for _ in numbers)])
        operands = ", ".join([source.name, *(each.name for each in numbers)])
        return self._line(f'"xgpu.tile"({operands}) {{map = {map_}{given}}} : ({types}) ->', kept, source.element)

    def insert(self, tile: DrawnTile, output: int, at: Sequence[Number | None], dropped: Sequence[int] = ()) -> None:
        """Write a tile into an output, as `tile` reads one."""
        target = self.outputs[output]
        numbers = [each for each in at if each is not None]
        shape = list(tile.shape)
        for each in sorted(dropped):
            shape.insert(each, 1)
        operands = ", ".join([tile.name, self._written[output], *(each.name for each in numbers)])
        types = ", ".join([tile.type, target.type, *("index" for _ in numbers)])
        map_ = _map(target.shape, at, shape, dropped)
        made = self._line(
            f'"xgpu.insert_tile"({operands}) {{map = {map_}}} : ({types}) ->', target.shape, target.element
        )
        self._written[output] = made.name

    def constant(self, value: str, shape: Sequence[int], element: str) -> DrawnTile:
        """Write a constant of equal elements."""
        return self._line(f"stablehlo.constant dense<{value}> :", shape, element)

    def op(
        self, name: str, operands: Sequence[DrawnTile], shape: Sequence[int], element: str, attributes: str = ""
    ) -> DrawnTile:
        """Write an operation of StableHLO in its generic form."""
        types = ", ".join(each.type for each in operands)
        names = ", ".join(each.name for each in operands)
        described = f" {{{attributes}}}" if attributes else ""
        return self._line(f'"stablehlo.{name}"({names}){described} : ({types}) ->', shape, element)

    def map(self, name: str, *operands: DrawnTile, attributes: str = "") -> DrawnTile:
        """Write an operation on single elements, whose result is of the first operand's type."""
        return self.op(name, operands, operands[0].shape, operands[0].element, attributes)

    def convert(self, tile: DrawnTile, element: str) -> DrawnTile:
        """Convert elements to another type."""
        return self.op("convert", [tile], tile.shape, element)

    def broadcast(self, tile: DrawnTile, shape: Sequence[int], dimensions: Sequence[int]) -> DrawnTile:
        """Write a broadcast to some dimensions of a shape."""
        return self.op("broadcast_in_dim", [tile], shape, tile.element, f"broadcast_dimensions = {_array(dimensions)}")

    def transpose(self, tile: DrawnTile, permutation: Sequence[int]) -> DrawnTile:
        """Write a transposition."""
        shape = [tile.shape[each] for each in permutation]
        return self.op("transpose", [tile], shape, tile.element, f"permutation = {_array(permutation)}")

    def dot(
        self,
        left: DrawnTile,
        right: DrawnTile,
        contracted: tuple[Sequence[int], Sequence[int]] = ((1,), (0,)),
        batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
        element: str = "f32",
        precision: str = "DEFAULT",
        given: str = "",
    ) -> DrawnTile:
        """Write a product."""
        free = [
            [size for d, size in enumerate(tile.shape) if d not in (*contracted[n], *batch[n])]
            for n, tile in enumerate((left, right))
        ]
        shape = [*(left.shape[d] for d in batch[0]), *free[0], *free[1]]
        sides = [("lhs_batching_dimensions", batch[0]), ("rhs_batching_dimensions", batch[1])]
        sides += [("lhs_contracting_dimensions", contracted[0]), ("rhs_contracting_dimensions", contracted[1])]
        numbers = ", ".join(f"{name} = {list(which)}" for name, which in sides if which)
        asked = ", ".join([f"#stablehlo<precision {precision}>"] * 2)
        described = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, precision_config = [{asked}]{given}"
        return self.op("dot_general", [left, right], shape, element, described)

    def reduce(self, name: str, tile: DrawnTile, init: DrawnTile, dimensions: Sequence[int]) -> DrawnTile:
        """Write a reduction by one operation."""
        shape = [size for d, size in enumerate(tile.shape) if d not in dimensions]
        types = f"({tile.type}, {init.type}) ->"
        text = f"stablehlo.reduce({tile.name} init: {init.name}) applies stablehlo.{name} across dimensions ="
        return self._line(f"{text} {list(dimensions)} : {types}", shape, tile.element)

    @contextmanager
    def steps(self, count: int, inits: Sequence[DrawnTile], given: str = "") -> Iterator[Steps]:
        """Write steps; the body assigns to ``yielded``, or ``given``, and ``results`` are known afterwards."""
        number = self._fresh()
        names = [self._fresh() for _ in inits]
        made = Steps(
            Number(number, count),
            [DrawnTile(name, i.shape, i.element) for name, i in zip(names, inits, strict=True)],
            given,
        )
        result = self._fresh()
        arguments = ", ".join([f"{number}: index", *(f"{each.name}: {each.type}" for each in made.carried)])
        many = f":{len(inits)}" if len(inits) > 1 else ""
        self._lines.append(f'{result}{many} = "xgpu.steps"({", ".join(each.name for each in inits)}) ({{')
        self._lines.append(f"^bb0({arguments}):")
        yield made
        types = ", ".join(each.type for each in inits)
        self._lines.append(f'"xgpu.yield"({", ".join(each.name for each in made.yielded)}) : ({types}) -> ()')
        closing = f"({types})" if len(inits) > 1 else types
        self._lines.append(f"}}) {{count = {count} : i64{made.given}}} : ({types}) -> {closing}")
        results = [f"{result}#{n}" for n in range(len(inits))] if len(inits) > 1 else [result]
        made.results = [DrawnTile(name, i.shape, i.element) for name, i in zip(results, inits, strict=True)]

    def text(self) -> str:
        """Return the module."""
        arrays = [*self.inputs, *self.outputs]
        results = ", ".join(each.type for each in self.outputs)
        blocks = 1
        for size in self.grid:
            blocks *= size
        described = ", ".join(
            [
                f"xgpu.block = array<i64: {self.threads}, 1, 1>",
                'xgpu.emitter = "block"',
                f"xgpu.grid = array<i64: {blocks}, 1, 1>",
                f"xgpu.inputs = {len(self.inputs)} : i64",
                "xgpu.kernel",
                f"xgpu.schedule = #xgpu.schedule<threads = {self.threads}>",
                *([f"xgpu.cluster = array<i64: {self.cluster}, 1, 1>"] if self.cluster > 1 else []),
            ]
        )
        parameters = ", ".join(f"{each.name}: {each.type}" for each in arrays)
        closing = f"({results})" if len(self.outputs) > 1 else results
        outs = ", ".join(each.name for each in self.outputs)
        inside = [f"{each.name}: index" for each in self.at]
        inside += [f"%o{n}: {each.type}" for n, each in enumerate(self.outputs)]
        many = f":{len(self.outputs)}" if len(self.outputs) > 1 else ""
        names = ", ".join(f"%r#{n}" for n in range(len(self.outputs))) if many else "%r"
        lines = [
            'module attributes {xgpu.level = "tiles"} {',
            f"func.func @kernel({parameters}) -> {closing} attributes {{{described}}} {{",
            f'%r{many} = "xgpu.blocks"({outs}) ({{',
            f"^bb0({', '.join(inside)}):",
            *self._lines,
            f'"xgpu.yield"({", ".join(self._written)}) : ({results}) -> ()',
            f"}}) {{grid = {_array(self.grid)}}} : ({results}) -> {closing}",
            f"return {names} : {results}",
            "}",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _line(self, text: str, shape: Sequence[int], element: str) -> DrawnTile:
        made = DrawnTile(self._fresh(), tuple(shape), element)
        self._lines.append(f"{made.name} = {text} {made.type}")
        return made


def _array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def _map(whole: Sequence[int], at: Sequence[Number | None], shape: Sequence[int], dropped: Sequence[int]) -> str:
    """Return the map of a tile: block by block along each dimension, without what is outside."""
    numbers = [each for each in at if each is not None]
    kept = [d for d in range(len(shape)) if d not in dropped]
    results, bounds = [], []
    for d, (size, number) in enumerate(zip(shape, at, strict=True)):
        parts = [] if number is None else [f"d{numbers.index(number)} * {size}"]
        parts += [f"s{kept.index(d)}"] if d in kept else []
        results.append(" + ".join(parts) or "0")
        reached = size * (1 if number is None else number.count)
        if reached > whole[d]:
            bounds.append(f"{results[-1]} in [0, {whole[d] - 1}]")
    names = f"({', '.join(f'd{n}' for n in range(len(numbers)))})"
    symbols = f"[{', '.join(f's{n}' for n in range(len(kept)))}]" if kept else ""
    ranges = [f"d{n} in [0, {each.count - 1}]" for n, each in enumerate(numbers)]
    ranges += [f"s{n} in [0, {shape[d] - 1}]" for n, d in enumerate(kept)]
    return f"#xgpu.map<{', '.join([f'{names}{symbols} -> ({", ".join(results)})', *ranges, *bounds])}>"
