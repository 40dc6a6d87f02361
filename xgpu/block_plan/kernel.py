"""A kernel of the emitter ``block`` at level ``tiles``: its operations by number, and the graph to decide about."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from xgpu import ir
from xgpu.block_plan.graph import Carried, Graph, Kind, PlanNode, Tile
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp, IndexTileOp, InsertTileOp, StepsOp, TileOp
from xgpu.dtypes import dtype_of_element
from xgpu.errors import CompilerError
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.source_location import source_of
from xgpu.indexing.access import integers
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.records import dataclass
from xgpu.structure import defining_op, walk

EMITTER_NAME = "block"
"""The emitter whose kernels are planned."""
THREADS = "threads"
"""The entry of `xgpu.schedule` that says how many threads a block has."""
_YIELD = "xgpu.yield"
_AXES = {
    "stablehlo.reduce": "dimensions",
    "stablehlo.broadcast_in_dim": "broadcast_dimensions",
    "stablehlo.transpose": "permutation",
}
_KINDS: dict[str, Kind] = {
    TileOp.OPERATION_NAME: "read",
    IndexTileOp.OPERATION_NAME: "numbers",
    InsertTileOp.OPERATION_NAME: "write",
    StepsOp.OPERATION_NAME: "steps",
    _YIELD: "yield",
    "stablehlo.constant": "constant",
    "stablehlo.iota": "constant",
    "stablehlo.broadcast_in_dim": "spread",
    "stablehlo.dot_general": "product",
}


@dataclass(frozen=True)
class BlockKernel:
    """The function of a kernel, and what its blocks do."""

    function: ir.Operation
    blocks: BlocksOp

    @cached_property
    def ops(self) -> list[ir.Operation]:
        """The operations that make or take tiles, by number: steps, then what is in them, then what follows."""
        return list(_operations(self.blocks.body))

    @cached_property
    def values(self) -> list[ir.Value]:
        """The tiles, by number."""
        found: list[ir.Value] = []
        for op in self.ops:
            found += [value for value in op.results if op.name != InsertTileOp.OPERATION_NAME]
            if isinstance(op.opview, StepsOp):
                found += list(op.opview.body.arguments)[1:]
        return found

    @cached_property
    def number(self) -> dict[ir.Value, int]:
        """The number of each tile."""
        return {value: number for number, value in enumerate(self.values)}

    @cached_property
    def graph(self) -> Graph:
        """The graph of the block's computation."""
        places = {op: number for number, op in enumerate(self.ops)}
        nodes = tuple(self._node(op, places) for op in self.ops)
        return Graph(nodes, tuple(_tile(value) for value in self.values), tuple(self._carried(places)))

    @cached_property
    def threads(self) -> int:
        """The number of a block's threads. Raises `CompilerError` if the schedule does not say it."""
        given = self.function.attributes.get(attributes.SCHEDULE)
        count = 0 if given is None else attributes.schedule_values(given).get(THREADS, 0)
        if not 32 <= count <= 1024 or count % 32:
            raise CompilerError(
                f"'{self.function.name}': expected {attributes.SCHEDULE} with {THREADS}, a multiple of 32 up to 1024,"
                f" got {given or 'none'}",
                source_of(self.function),
            )
        return count

    def given(self, name: str) -> dict[int, ir.Attribute]:
        """Return an attribute of each tile that has it; those of steps have one for all that they carry."""
        found: dict[int, ir.Attribute] = {}
        for op in self.ops:
            if name not in op.attributes:
                continue
            value = op.attributes[name]
            entries = _entries(value) if _is_several(op) else [value]
            if len(entries) != len(op.results):
                got = f"got {len(entries)}"
                raise CompilerError(
                    f"'{op.name}': attribute '{name}': expected an entry for each of {len(op.results)} tiles, {got}",
                    source_of(op),
                )
            found |= {self.number[value]: entry for value, entry in zip(op.results, entries, strict=True)}
        return found

    def decide(self, name: str, decided: Mapping[int, ir.Attribute], other: ir.Attribute | None = None) -> None:
        """Write an attribute of tiles; of steps ``other`` stands for those that they carry without it."""
        for op in self.ops:
            tiles = [self.number[value] for value in op.results if value in self.number]
            if name in op.attributes or not any(tile in decided for tile in tiles):
                continue
            if _is_several(op):
                entries = [decided.get(tile, other) for tile in tiles]
                op.attributes[name] = _array([each for each in entries if each is not None])
            else:
                op.attributes[name] = decided[tiles[0]]

    def _node(self, op: ir.Operation, places: dict[ir.Operation, int]) -> PlanNode:
        kind = _kind(op)
        body = places[op] + 1 if kind == "steps" else 0
        # The number of steps in graphs is that of their operation, plus 1: 0 is what is outside of all.
        around = op.parent
        region = places[around] + 1 if around is not None and around in places else 0
        results = () if kind == "write" else tuple(self.number[value] for value in op.results)
        operands = tuple(self.number[value] for value in op.operands if value in self.number)
        before = [made for value in op.operands if (made := defining_op(value)) is not None and made in places]
        after = tuple(places[made] for made in before if made.name == InsertTileOp.OPERATION_NAME)
        is_product = kind == "product"
        return PlanNode(
            kind,
            operands,
            results,
            region,
            body,
            op.opview.count if isinstance(op.opview, StepsOp) else 0,
            OPERATIONS[op.name].instructions if op.name in OPERATIONS else 1,
            after,
            operand_dimensions(op) if is_product else None,
            self._fragment(op) if is_product else "",
            instruction_of(op) if is_product else "",
            tuple(integers(op, _AXES[op.name])) if op.name in _AXES else None,
        )

    def _fragment(self, product: ir.Operation) -> str:
        """Return how the results of a product lie in registers.

        Products whose results could lie alike, but for which different warps are given, are told apart by these.
        """
        fragment = _fragment(product)
        given = self._warps_given.get((fragment, product.results[0].type), set())
        warps = product.attributes.get(attributes.WARPS)
        return fragment if warps is None or len(given) == 1 else f"{fragment} by {warps}"

    @cached_property
    def _warps_given(self) -> dict[tuple[str, ir.Type], set[ir.Attribute]]:
        """The warps that are given for products, by how the results lie in registers, and their type."""
        found: dict[tuple[str, ir.Type], set[ir.Attribute]] = {}
        for op in self.ops:
            if _kind(op) == "product" and attributes.WARPS in op.attributes:
                found.setdefault((_fragment(op), op.results[0].type), set()).add(op.attributes[attributes.WARPS])
        return found

    def _carried(self, places: dict[ir.Operation, int]) -> Iterator[Carried]:
        for op in self.ops:
            steps = op.opview
            if not isinstance(steps, StepsOp):
                continue
            (*_, end) = steps.body.operations
            values = zip(steps.inits, list(steps.body.arguments)[1:], end.operation.operands, op.results, strict=True)
            for tiles in values:
                yield Carried(places[op], *(self.number[value] for value in tiles))


def kernels_of(module: ir.Module) -> list[BlockKernel]:
    """Return the kernels of a module that are planned."""
    found = []
    for op in walk(module.operation, BlocksOp.OPERATION_NAME):
        function = op.parent
        emitter = None if function is None else function.attributes.get(attributes.EMITTER)
        view = op.opview
        if isinstance(emitter, ir.StringAttr) and emitter.value == EMITTER_NAME and isinstance(view, BlocksOp):
            assert function is not None
            found.append(BlockKernel(function, view))
    return found


def _operations(block: ir.Block) -> Iterator[ir.Operation]:
    for view in block.operations:
        op = view.operation
        is_end = op.name == _YIELD and op.parent is not None and op.parent.name == BlocksOp.OPERATION_NAME
        if not is_end:
            yield op
        if isinstance(op.opview, StepsOp):
            yield from _operations(op.opview.body)


def _is_several(op: ir.Operation) -> bool:
    return op.name == StepsOp.OPERATION_NAME


def _entries(value: ir.Attribute) -> list[ir.Attribute]:
    if isinstance(value, ir.DenseI64ArrayAttr):
        return [attributes.int_attribute(each) for each in value]
    return list(value) if isinstance(value, ir.ArrayAttr) else [value]


def _array(entries: list[ir.Attribute]) -> ir.Attribute:
    if entries and all(isinstance(each, ir.IntegerAttr) for each in entries):
        return attributes.int_array(tuple(attributes.int_of(each) for each in entries))
    return ir.ArrayAttr.get(entries)


def _kind(op: ir.Operation) -> Kind:
    if op.name in _KINDS:
        return _KINDS[op.name]
    known = OPERATIONS.get(op.name)
    if known is None:
        return "reduce"
    if known.kind == "elementwise":
        return "elementwise"
    return "move" if known.kind in ("indexing", "piecewise") else "reduce"


def _fragment(product: ir.Operation) -> str:
    types = [ir.RankedTensorType(value.type).element_type for value in (*product.operands, *product.results)]
    left, _ = operand_dimensions(product)
    return " ".join(map(str, (*types, len(left.batching), len(left.own))))


def instruction_of(product: ir.Operation) -> str:
    """Return the instruction that multiplies the tiles of a product, or nothing if that is not decided."""
    given = product.attributes.get(attributes.PRODUCT)
    return given.value if isinstance(given, ir.StringAttr) else ""


def _tile(value: ir.Value) -> Tile:
    type_ = ir.RankedTensorType(value.type)
    return Tile(tuple(type_.shape), dtype_of_element(type_.element_type).storage_bits)
