"""What teams of threads, warps or warp groups, do with the sums that they hold: compute what follows, and store it.

A thread holds neighbours of a row two by two. Written so, memory gets a part of a sector at a time. So either results
go through shared memory, from where they are copied as boxes, or the sums do, before anything is computed of them: then
threads read and write whole sectors, and what follows is code of a few elements instead of all that a thread holds.
"""

from dataclasses import dataclass
from functools import cached_property

from xgpu import ir
from xgpu.dialects.attributes import EARLY, UNROLL
from xgpu.dialects.block import copies, waits
from xgpu.dialects.block.tiles import InsertTileOp
from xgpu.dialects.xgpu import ApplyIndexingOp, LoopOp, YieldOp
from xgpu.emit.builders import insert
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import constant, dim, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.row_panels import Panels
from xgpu.passes.llvm.memory import load, store
from xgpu.passes.support.arith_builder import constant as splat
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import BlockProgram, BlockSchedule
from xgpu.passes.tiles.boxes import SWIZZLE, Boxes
from xgpu.passes.tiles.fragment_code import FragmentCode
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.roles import Place, equal
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.passes.tiles.vectors import extract
from xgpu.passes.tiles.vectors import insert as insert_element

_CHUNK = 16
_SUM_BYTES = 4
_FIRST_BARRIER = 1
"""The number of the named barrier of the first team; that of all threads has number 0."""


@dataclass(frozen=True)
class Staging:
    """A result that is copied as boxes, and their tensor map."""

    boxes: Boxes
    map: ir.Value


@dataclass(frozen=True)
class Room:
    """Shared memory in which each team has so many bytes: for the rows of one result, or for a panel of sums."""

    memory: ir.Value
    bytes: int


@dataclass(frozen=True, eq=False)
class Results:
    """Writes the results of each store of the program.

    ``staging`` has an entry for each if results are copied as boxes; else sums go from thread to thread by ``panels``.
    Either way they go through a team's part of the ``room``. If ``is_met``, the threads of the block have met since
    they last used it. A thread's vector of sums has those of each product, one after the other.
    """

    program: BlockProgram[BlockSchedule]
    place: Place
    panels: Panels
    staging: tuple[Staging, ...]
    room: Room
    is_met: bool = False

    def begin(self) -> None:
        """Write what a team does before its first tile."""
        with only_if(self._is_leader):
            for each in self.staging:
                copies.AcquireTensorMapOp.create([each.map])

    def end(self) -> None:
        """Write what a team does after its last tile: memory must not go before it has been read."""
        if any(self.staging):
            with only_if(self._is_leader):
                copies.BulkWaitOp.create(attributes={"pending": 0, "until": "read"})

    def write(self, arrays: Values, at: Values, sums: Values) -> Values:
        """Write what follows the last step of a tile; return the arrays afterwards."""
        arrays = list(arrays)
        for number, total in enumerate(sums):
            if not self.staging:
                arrays = self._store_rows(arrays, at, number, total)
            for each, staging in zip(self.program.stores, self.staging, strict=False):
                self._store_boxes(staging, each, at, number, total)
        return arrays

    @property
    def _is_leader(self) -> ir.Value:
        map_ = IndexingMap(ranges((self.place.threads,)), (), (dim(0) % self._holders.size,))
        in_group = ApplyIndexingOp.build(map_, [self.place.thread])
        return equal(in_group[0], 0)

    @property
    def _holders(self) -> Holders:
        return self.panels.holders

    @property
    def _team(self) -> ir.Value:
        """The number of the thread's team."""
        return self.place.warp if self._holders.warps == 1 else self.place.group

    @cached_property
    def _own(self) -> IndexingMap:
        """(thread)[half, eighth, neighbour] -> row and column in a product, and the number in the thread's vector."""
        return self._holders.accumulators

    def _store_rows(self, arrays: Values, at: Values, number: int, total: ir.Value) -> Values:
        """Hand the sums from thread to thread, a panel at a time, and let each compute neighbours of a row."""
        arrays, columns = list(arrays), self._holders.columns
        for first in range(0, columns, self.panels.most):
            width = min(self.panels.most, columns - first)
            if number or first or not self.is_met:
                self._meet()
            self._write_panel(total, first, width)
            self._meet()
            for position, each in enumerate(self.program.stores):
                arrays[position] = self._store_panel(arrays[position], each, at, number, (first, width))
        return arrays

    def _write_panel(self, total: ir.Value, first: int, width: int) -> None:
        panels = self._own_panels()
        loop = LoopOp.build(self.panels.written(first, width), [self.place.thread], [])
        loop.operation.attributes[UNROLL] = ir.StringAttr.get(EARLY)
        with ir.InsertionPoint(loop.body):
            byte, register = loop.result_arguments
            for product, panel in enumerate(panels):
                pair = splat(0, ir.VectorType.get([2], ir.VectorType(total.type).element_type))
                for neighbour in range(2):
                    position = ir.arith.addi(register, create_index(product * self._held + neighbour))
                    pair = insert_element(extract(total, position), pair, create_index(neighbour))
                store(pair, offset(panel, as_i32(byte)), 2 * _SUM_BYTES)
            YieldOp.build([])

    def _store_panel(
        self, array: ir.Value, each: InsertTileOp, at: Values, number: int, part: tuple[int, int]
    ) -> ir.Value:
        """Compute what follows of a panel's sums, and store it."""
        first, width = part
        read, neighbours = self.panels.read(width), self.panels.neighbours
        row = read.results[0] + self._holders.first_row(number)
        column, numbers = read.results[1] + first + self._holders.first_column, [dim(1 + i) for i in range(len(at))]
        outer: list[Constraint] = list(read.constraints)
        inner: list[Constraint] = []
        for expression, bound in each.map.constraints:
            # Where all neighbours of a thread are inside or none is, that is asked once.
            is_whole = 1 not in expression.variables()[1] or (bound.upper + 1) % neighbours == 0
            where = column if is_whole else column + symbol(1)
            (outer if is_whole else inner).append((expression.substitute(numbers, [row, where]), bound))
        dims = (*read.dims, *each.map.dims)
        passes = IndexingMap(dims, read.symbols, (row, column, read.results[2]), tuple(outer))
        variables, together = [self.place.thread, *at], self.panels.together
        if together == 1:
            return self._store_passes(array, each, at, (passes, variables), inner)
        count = IndexingMap(dims, (Interval(0, read.symbols[0].size // together - 1),), ())
        loop = LoopOp.build(count, variables, [array])
        loop.operation.attributes[UNROLL] = ir.StringAttr.get("none")
        with ir.InsertionPoint(loop.body):
            few, bounds = _few(passes, inner, together)
            of_few = (few, [*variables, *loop.symbol_arguments])
            YieldOp.build([self._store_passes(loop.carried_arguments[0], each, at, of_few, bounds)])
        return loop.operation.results[0]

    def _store_passes(
        self,
        array: ir.Value,
        each: InsertTileOp,
        at: Values,
        of: tuple[IndexingMap, Values],
        inner: list[Constraint],
    ) -> ir.Value:
        """Store the neighbours of some passes, a map and its variables, within the ``inner`` constraints."""
        passes, variables = of
        loop = LoopOp.build(passes, variables, [array])
        if self.panels.together == 1:
            loop.operation.attributes[UNROLL] = ir.StringAttr.get("none")
        with ir.InsertionPoint(loop.body):
            count = self.panels.neighbours
            type_ = ir.VectorType.get([count], self.program.sum_element)
            places = [offset(panel, as_i32(loop.result_arguments[2])) for panel in self._own_panels()]
            sums = [load(place, type_, min(_CHUNK, count * _SUM_BYTES)) for place in places]
            where = (_neighbours(passes, inner, count), [*variables, *loop.symbol_arguments])
            YieldOp.build([self._store_neighbours(loop.carried_arguments[0], each, at, sums, where)])
        return loop.operation.results[0]

    def _store_neighbours(
        self,
        array: ir.Value,
        each: InsertTileOp,
        at: Values,
        sums: Values,
        where: tuple[IndexingMap, Values],
    ) -> ir.Value:
        loop = LoopOp.build(*where, [array])
        with ir.InsertionPoint(loop.body):
            *element, position = loop.result_arguments
            own = [extract(each, position) for each in sums]
            scalar = self._value(each, at, element, own, is_inside=True)
            indices = ApplyIndexingOp.build(each.map, [*at, *element])
            YieldOp.build([insert(scalar, loop.carried_arguments[0], indices)])
        return loop.operation.results[0]

    def _value(self, each: InsertTileOp, at: Values, element: Values, sums: Values, is_inside: bool) -> ir.Value:
        """Return what is stored of an element, of which ``sums`` has that of each product."""
        map_ = each.map
        known = IndexingMap(map_.dims, map_.symbols, (), map_.constraints if is_inside else ())
        totals = dict(zip(self.program.totals, sums, strict=True))
        return FragmentCode(at, element, totals, known).value(each.tile)

    def _store_boxes(self, staging: Staging, each: InsertTileOp, at: Values, number: int, total: ir.Value) -> None:
        leader = self._is_leader
        with only_if(leader):
            copies.BulkWaitOp.create(attributes={"pending": 0, "until": "read"})
        self._meet()
        self._write_staging(staging, each, at, number, total)
        waits.FenceOp.create(attributes={"kind": "async"})
        self._meet()
        with only_if(leader):
            view = staging.boxes.view
            row = ir.arith.muli(self._team, create_index(self._holders.share * self._holders.rows))
            row = ir.arith.addi(row, create_index(number * self._holders.rows))
            for panel in range(view.panels):
                where = staging.boxes.coordinates(at, create_index(panel), row)
                source = offset(self._own_room(), panel * self._holders.rows * SWIZZLE)
                copies.TensorStoreOp.create([staging.map, source, *where])
            copies.BulkCommitOp.create()

    def _meet(self) -> None:
        """Wait for the other threads of the team."""
        number = ir.arith.addi(as_i32(self._team), i32(_FIRST_BARRIER))
        waits.NamedBarrierOp.create([number], attributes={"threads": self._holders.size, "wait": True})

    @property
    def _held(self) -> int:
        """The sums of each product in a thread's vector."""
        return self._holders.rows * self._holders.columns // self._holders.size

    def _own_panels(self) -> Values:
        """Return where a team's panels are, one for each product."""
        room = self._own_room()
        others = range(1, len(self.program.products))
        return [room, *(offset(room, number * self.panels.bytes) for number in others)]

    def _own_room(self) -> ir.Value:
        """Return where a team's results, or sums, are in shared memory."""
        return offset(self.room.memory, ir.arith.muli(as_i32(self._team), i32(self.room.bytes)))

    def _of_products(self, total: ir.Value, register: ir.Value) -> Values:
        """Return the sums of each product at one place of a thread's vector."""
        others = range(1, len(self.program.products))
        later = [ir.arith.addi(register, create_index(number * self._held)) for number in others]
        return [extract(total, place) for place in (register, *later)]

    def _write_staging(self, staging: Staging, each: InsertTileOp, at: Values, number: int, total: ir.Value) -> None:
        """Write the thread's elements, two neighbours at once, each chunk where the swizzle has it."""
        size, room = staging.boxes.element_bytes, self._own_room()
        (row, column, place), first = self._own.results, self._holders.first_row(number)
        byte = column.substitute(None, [symbol(0), symbol(1), constant(0)]) * size
        panel = byte // SWIZZLE * (self._holders.rows * SWIZZLE) + row * SWIZZLE
        results = (panel, byte % SWIZZLE // _CHUNK, row % 8, byte % _CHUNK)
        map_ = IndexingMap(self._own.dims, self._own.symbols[:2], results)
        element = staging.boxes.element
        pair = ir.VectorType.get([2], element)
        loop = LoopOp.build(map_, [self.place.thread], [])
        loop.operation.attributes[UNROLL] = ir.StringAttr.get(EARLY)
        with ir.InsertionPoint(loop.body):
            start, chunk, turn, rest = (as_i32(value) for value in loop.result_arguments)
            parts = [part.substitute(None, [dim(1), dim(2), symbol(0)]) for part in (first + row, column, place)]
            dims = (*self._own.dims, *self._own.symbols[:2])
            inner_map = IndexingMap(dims, self._own.symbols[2:], (*parts, symbol(0)))
            zero = splat(0, pair)
            inner = LoopOp.build(inner_map, [self.place.thread, *loop.symbol_arguments], [zero])
            with ir.InsertionPoint(inner.body):
                *where, register, neighbour = inner.result_arguments
                sums = self._of_products(total, register)
                scalar = self._value(each, at, where, sums, is_inside=False)
                YieldOp.build([insert_element(scalar, inner.carried_arguments[0], neighbour)])
            turned = ir.arith.muli(ir.arith.xori(chunk, turn), i32(_CHUNK))
            address = offset(room, ir.arith.addi(ir.arith.addi(start, turned), rest))
            store(inner.operation.results[0], address, 2 * size)
            YieldOp.build([])


def _few(passes: IndexingMap, inner: list[Constraint], count: int) -> tuple[IndexingMap, list[Constraint]]:
    """Return the map of ``count`` passes, given how many such there are before, and the inner constraints for it."""
    number = {0: dim(len(passes.dims)) * count + symbol(0)}
    dims = (*passes.dims, Interval(0, passes.symbols[0].size // count - 1))
    results = tuple(each.substitute(None, number) for each in passes.results)
    outer, few = (
        [(each.substitute(None, number), bound) for each, bound in some] for some in (passes.constraints, inner)
    )
    return IndexingMap(dims, (Interval(0, count - 1),), results, tuple(outer)).with_simple_results(), few


def _neighbours(passes: IndexingMap, inside: list[Constraint], count: int) -> IndexingMap:
    """Return the map of the neighbours of each pass, a dimension now, to row, column and number among them."""
    turned = {0: dim(len(passes.dims)), 1: symbol(0)}
    row, column = (each.substitute(None, turned) for each in passes.results[:2])
    bounds = tuple((each.substitute(None, turned), bound) for each, bound in inside)
    dims = (*passes.dims, *passes.symbols)
    return IndexingMap(dims, (Interval(0, count - 1),), (row, column + symbol(0), symbol(0)), bounds)
