"""A kernel that is written on tiles, and what was decided about each of them."""

from collections.abc import Iterable, Iterator
from functools import cached_property

from xgpu import ir
from xgpu.block_plan.kernel import instruction_of
from xgpu.block_plan.memory.boxes import MAP_BYTES, BulkTile, bulk_bytes, bulk_tile
from xgpu.block_plan.memory.strides import TilePanel, are_apart
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp, IndexTileOp, InsertTileOp, StepsOp, TileOp
from xgpu.emit.families.blocks.schedule import BlockProgramSchedule
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.indexing.hlo_maps import access_kind
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS, only
from xgpu.passes.tiles.blocks.memory.shared import TileLayout
from xgpu.passes.tiles.blocks.memory.stored import element_bytes
from xgpu.passes.tiles.blocks.products.fragments import FragmentLayout
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of, owning_op, users_of
from xgpu.target_machine import WARP_SIZE

PRODUCT, REDUCE = "stablehlo.dot_general", "stablehlo.reduce"
_BULK = attributes.BULK


@dataclass(frozen=True, eq=False)
class ScheduledKernel:
    """The function of a kernel, its blocks, and its schedule."""

    function: ir.Operation
    blocks: BlocksOp
    schedule: BlockProgramSchedule

    @classmethod
    def read(cls, function: ir.Operation, schedule: BlockProgramSchedule) -> "ScheduledKernel":
        """Return the kernel of a function. Raises `CompilerError` for one that has no blocks, or several."""
        if len(function.regions[0].blocks) != 1:
            refuse(PASS, function, f"expected a body of one block, got {len(function.regions[0].blocks)}")
        return cls(function, only(function, function.regions[0].blocks[0], BlocksOp), schedule)

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.schedule.threads

    @property
    def warps(self) -> int:
        """The warps of a block."""
        return self.threads // WARP_SIZE

    @property
    def steps(self) -> list[StepsOp]:
        """The loops, in their order."""
        return [view for each in self.blocks.body.operations if isinstance(view := each.operation.opview, StepsOp)]

    def tiles(self) -> Iterator[tuple[ir.Value, ir.Operation, int]]:
        """Yield each tile that something makes, with the operation, and which of those of steps it is, -1 of others.

        Of what steps carry, both what a step takes and the result.
        """
        for block in (self.blocks.body, *(each.body for each in self.steps)):
            for view in list(block.operations)[:-1]:
                op = view.operation
                if isinstance(op.opview, StepsOp):
                    arguments = list(op.opview.body.arguments)[1:]
                    for number, pair in enumerate(zip(arguments, op.results, strict=True)):
                        yield from ((value, op, number) for value in pair)
                elif not isinstance(op.opview, InsertTileOp):
                    yield from ((value, op, -1) for value in op.results)

    @cached_property
    def places(self) -> dict[ir.Value, str]:
        """The place of each tile: shared, fragments or computed. Raises `CompilerError` where that is not said."""
        return {value: _place(op, number) for value, op, number in self.tiles()}

    @cached_property
    def layouts(self) -> dict[ir.Value, TileLayout]:
        """The layout of each tile in shared memory. Raises `CompilerError` for one that does not fit the tile."""
        shared = attributes.SHARED
        return {
            value: self._layout(value, op, number) for value, op, number in self.tiles() if self.places[value] == shared
        }

    def is_kept(self, tile: ir.Value) -> bool:
        """Whether a tile is in memory or in registers."""
        return self.places[tile] != attributes.COMPUTED

    def is_ahead(self, op: ir.Operation) -> bool:
        """Whether an operation reads a tile that is copied ahead of the step that it is in."""
        return isinstance(op.opview, TileOp) and self.buffers(op) > 1

    def buffers(self, op: ir.Operation) -> int:
        """Return how many buffers the tiles have that an operation makes."""
        parent = op.parent
        if parent is None or not isinstance(parent.opview, StepsOp) or not isinstance(op.opview, TileOp):
            return 1
        return stages_of(parent.opview)

    @cached_property
    def asynchronous(self) -> tuple[tuple[int, int], ...]:
        """The bytes that TMA writes, or warp groups multiply: the first of each tile, and the one after the last."""
        products = [op for _, op, _ in self.tiles() if instruction_of(op) == attributes.BY_WARP_GROUPS]
        found = {self.layouts[tile] for op in products for tile in self.kept_of(op.operands) if tile in self.layouts}
        found |= {self.layouts[each.tile] for each in self.bulk}
        return tuple(sorted((each.start, each.end) for each in found))

    def kept_of(self, values: Iterable[ir.Value]) -> Iterator[ir.Value]:
        """Yield the tiles that are kept of which some are computed, or which they are."""
        pending, seen = list(values), set[ir.Value]()
        while pending:
            tile = pending.pop()
            if tile in seen or tile not in self.places:
                continue
            seen.add(tile)
            op = owning_op(tile)
            if self.is_kept(tile):
                yield tile
            elif not isinstance(op.opview, TileOp | IndexTileOp):
                pending += op.operands

    @cached_property
    def bulk(self) -> dict[TileOp, BulkTile]:
        """The tiles that TMA copies, in order. Raises `CompilerError` for one that it cannot copy."""
        views = (op.opview for _, op, _ in self.tiles())
        return {view: self._bulk_tile(view) for view in views if isinstance(view, TileOp) and _copy(view) == _BULK}

    def _bulk_tile(self, tile: TileOp) -> BulkTile:
        op = tile.operation
        found: BulkTile | str = "expected a tile of steps with several buffers"
        if attributes.MULTICAST in op.attributes:
            found = "expected a kernel without clusters"
        elif self.is_ahead(op):
            layout = self.layouts[tile.tile]
            bits = 8 * element_bytes(layout.dtype)
            found = bulk_tile(tile.map, shape_of(tile.array), bits, layout.strides, layout.swizzle or (), layout.panel)
            if isinstance(found, BulkTile) and layout.start % found.alignment:
                found = f"expected one that begins at a multiple of {found.alignment} bytes, got {layout.start}"
        if isinstance(found, str):
            refuse(PASS, op, f"attribute '{attributes.COPY}': TMA cannot copy the tile: {found}")
        return found

    @property
    def tile_bytes(self) -> int:
        """The shared memory of all tiles, up to where copies by TMA have theirs."""
        end = max((each.end for each in self.layouts.values()), default=0)
        return -(-end // MAP_BYTES) * MAP_BYTES if self.bulk else end

    @cached_property
    def bulk_steps(self) -> dict[ir.Operation, int]:
        """The steps of which TMA copies tiles, with their numbers of buffers."""
        return {each.operation: stages_of(each) for each in self.steps if self._has_bulk(each)}

    def _has_bulk(self, steps: StepsOp) -> bool:
        return any(each.operation.opview in self.bulk for each in steps.body.operations)

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        return self.tile_bytes + bulk_bytes(len(self.bulk), sum(self.bulk_steps.values()))

    def fragments(self, tile: ir.Value) -> FragmentLayout | None:
        """Return how threads hold a tile, or what it is computed from; None if it has nothing to do with a product.

        Elementwise operations and reductions of rows follow a product, and what steps carry follows what they yield.
        What follows none may be computed for the left operand of one.
        """
        if tile not in self._held:
            self._held[tile] = self._after_product(tile) or self._before_product(tile)
        return self._held[tile]

    @cached_property
    def _held(self) -> dict[ir.Value, FragmentLayout | None]:
        return {}

    def _after_product(self, tile: ir.Value) -> FragmentLayout | None:
        seen: set[ir.Value] = set()
        pending = [tile]
        while pending:
            value = pending.pop()
            if value in seen or value not in self.places:
                continue
            seen.add(value)
            op = owning_op(value)
            if self.places[value] == attributes.SHARED and value != tile:
                continue
            if op.name == PRODUCT:
                return product_layout(op, self.warps)
            if op.name == REDUCE and (rows := self._reduced(op)) is not None:
                return rows
            if isinstance(op.opview, StepsOp):
                pending.append(self._yielded(value, op.opview))
            elif _is_elementwise(op):
                same = [each for each in op.operands if shape_of(each) == shape_of(tile)]
                pending += reversed(same)
        return None

    def _before_product(self, tile: ir.Value) -> FragmentLayout | None:
        """Return how threads hold a left operand of warp groups, where a tile is computed for it, or with it."""
        shape, seen, pending = shape_of(tile), set[ir.Value](), [tile]
        while pending:
            value = pending.pop()
            if value in seen or (value != tile and self.places.get(value) != attributes.FRAGMENTS):
                continue
            seen.add(value)
            for user in users_of(value):
                if (layout := self._as_left(user, value)) is not None:
                    return layout
                pending += user.results if _is_elementwise(user) else []
            op = owning_op(value)
            if isinstance(op.opview, StepsOp):
                pending.append(self._yielded(value, op.opview))
            elif _is_elementwise(op):
                pending += [each for each in op.operands if shape_of(each) == shape]
        return None

    def _as_left(self, user: ir.Operation, value: ir.Value) -> FragmentLayout | None:
        """Return how warp groups read a tile in registers as their left operand; None if they do not."""
        is_left = instruction_of(user) == attributes.BY_WARP_GROUPS and user.operands[0] == value
        if not is_left or self.places[value] != attributes.FRAGMENTS:
            return None
        layout = product_layout(user, self.warps)
        whole = (layout.batching, layout.own, layout.across) == (0, 1, 1)
        return FragmentLayout(shape_of(value), 0, 1, layout.down, 1) if whole else None

    def _reduced(self, op: ir.Operation) -> FragmentLayout | None:
        """Return how threads hold the result of a reduction of rows that they hold whole; None if it is another one."""
        operand, rank = op.operands[0], len(shape_of(op.operands[0]))
        is_of_rows = len(op.results) == 1 and sorted(integers(op, "dimensions")) == list(range(1, rank))
        if not is_of_rows or self.places[operand] == attributes.SHARED:
            return None
        layout = self.fragments(operand)
        return None if layout is None else layout.of_rows

    def _yielded(self, value: ir.Value, steps: StepsOp) -> ir.Value:
        (*_, end) = steps.body.operations
        among: list[ir.Value] = [*list(steps.body.arguments)[1:]]
        if defining_op(value) is not None:
            among = [*steps.operation.results]
        return end.operation.operands[among.index(value)]

    def _layout(self, value: ir.Value, op: ir.Operation, number: int) -> TileLayout:
        shape, dtype = shape_of(value), dtype_of(value)
        strides = _numbers(op, attributes.LAYOUT, number)
        if strides is None or len(strides) != len(shape):
            wanted = f"expected one stride for each dimension of {value.type}, got {_got(op, attributes.LAYOUT)}"
            refuse(PASS, op, f"attribute '{attributes.LAYOUT}': {wanted}")
        numbers = _numbers(op, attributes.PANEL, number)
        panel = TilePanel(*numbers) if numbers else None
        if panel is not None and (problem := panel.problem(shape)):
            refuse(PASS, op, f"attribute '{attributes.PANEL}': expected {problem}, got {numbers}")
        if not are_apart(shape, strides, panel):
            wanted = f"expected strides with a place for each element of {value.type}, got {tuple(strides)}"
            refuse(PASS, op, f"attribute '{attributes.LAYOUT}': {wanted}")
        swizzle = _numbers(op, attributes.SWIZZLE, number) or ()
        offset = _offset(op, number)
        if offset is None or offset < 0:
            got = _got(op, attributes.OFFSET)
            refuse(PASS, op, f"attribute '{attributes.OFFSET}': expected where {value.type} begins, got {got}")
        packed = (swizzle[0], swizzle[1], swizzle[2]) if len(swizzle) else None
        if packed is not None and packed[2] <= packed[1]:
            got = _got(op, attributes.SWIZZLE)
            refuse(PASS, op, f"attribute '{attributes.SWIZZLE}': expected a shift above the base, got {got}")
        return TileLayout(offset, shape, tuple(strides), packed, dtype, self.buffers(op), panel)


def _is_elementwise(op: ir.Operation) -> bool:
    return op.name in OPERATIONS and access_kind(op) == "elementwise"


def stages_of(steps: StepsOp) -> int:
    """Return how many buffers there are for each tile that steps read."""
    given = steps.operation.attributes.get(attributes.STAGES)
    if given is None:
        refuse(PASS, steps.operation, f"attribute '{attributes.STAGES}': expected a number of buffers, got none")
    return attributes.int_of(given)


def prefetch_of(steps: StepsOp) -> int:
    """Return how many steps ahead copies are started."""
    stages, given = stages_of(steps), steps.operation.attributes.get(attributes.PREFETCH)
    prefetch = stages - 1 if given is None else attributes.int_of(given)
    if prefetch > stages - 1 or (stages > 1 and not prefetch):
        wanted = f"expected from 1 to {stages - 1} steps ahead, with {stages} buffers, got {prefetch}"
        refuse(PASS, steps.operation, f"attribute '{attributes.PREFETCH}': {wanted}")
    return prefetch


def product_layout(op: ir.Operation, warps: int) -> FragmentLayout:
    """Return how warps hold the result of a product. Raises `CompilerError` if that is not decided."""
    left, _ = operand_dimensions(op)
    given = op.attributes.get(attributes.WARPS)
    down, across = (0, 0) if given is None else attributes.int_array_of(given)
    if down * across != warps:
        wanted = f"expected warps down and across, of {warps} in all, got {given or 'none'}"
        refuse(PASS, op, f"attribute '{attributes.WARPS}': {wanted}")
    return FragmentLayout(shape_of(op.results[0]), len(left.batching), len(left.own), down, across)


def _copy(tile: TileOp) -> str | None:
    given = tile.operation.attributes.get(attributes.COPY)
    return given.value if isinstance(given, ir.StringAttr) else None


def _place(op: ir.Operation, number: int) -> str:
    given = op.attributes.get(attributes.PLACE)
    if isinstance(given, ir.ArrayAttr) and 0 <= number < len(given):
        given = given[number]
    if not isinstance(given, ir.StringAttr):
        wanted = "one for each tile" if number >= 0 else "where its tile is"
        refuse(PASS, op, f"attribute '{attributes.PLACE}': expected {wanted}, got {_got(op, attributes.PLACE)}")
    return given.value


def _numbers(op: ir.Operation, name: str, number: int) -> tuple[int, ...] | None:
    given = op.attributes.get(name)
    if isinstance(given, ir.ArrayAttr):
        given = given[number] if 0 <= number < len(given) else None
    return attributes.int_array_of(given) if isinstance(given, ir.DenseI64ArrayAttr) else None


def _offset(op: ir.Operation, number: int) -> int | None:
    given = op.attributes.get(attributes.OFFSET)
    if isinstance(given, ir.DenseI64ArrayAttr):
        values = attributes.int_array_of(given)
        return values[number] if 0 <= number < len(values) else None
    return attributes.int_of(given) if isinstance(given, ir.IntegerAttr) else None


def _got(op: ir.Operation, name: str) -> str:
    return str(op.attributes[name]) if name in op.attributes else "none"
