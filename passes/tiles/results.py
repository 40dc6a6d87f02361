"""The epilogue of a product by teams of threads, warps or warp groups: its computation, and the stores.

A thread holds neighbours of a row two by two. Stored so, memory gets a part of a sector at a time. So either results
go through shared memory, from where they are copied as boxes, or the sums do, before the epilogue: then threads read
and write whole sectors, and the epilogue is code of a few elements instead of all that a thread holds.
"""

from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.dialects.attributes import EARLY, UNROLL
from xgpu.dialects.block import copies, waits
from xgpu.dialects.block.tiles import InsertTileOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp, LoopOp, YieldOp
from xgpu.emit.builders import insert
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import constant, dim, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.row_panels import ADDED, Panels
from xgpu.passes.llvm.memory import load, store
from xgpu.passes.support.arith_builder import constant as splat
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import ProductProgram, TileSchedule
from xgpu.passes.tiles.boxes import SWIZZLE, Boxes
from xgpu.passes.tiles.fragment_code import FragmentCode
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.roles import ThreadNumbers, equal
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.passes.tiles.vectors import extract
from xgpu.passes.tiles.vectors import insert as insert_element
from xgpu.records import dataclass

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


@dataclass(frozen=True)
class Panel:
    """Sums in a team's memory: the ``columns`` from the ``first`` on of its product of a number."""

    memory: ir.Value
    number: int
    first: int
    columns: int


@dataclass(frozen=True, eq=False)
class TileResults:
    """Writes the results of each store of the program.

    ``staging`` has an entry for each if results are copied as boxes; else sums go from thread to thread by ``panels``.
    Either way they go through a team's part of the ``room``. If ``is_met``, the threads of the block have met since
    they last used it. A thread's vector of sums has those of each product, one after the other.
    """

    program: ProductProgram[TileSchedule]
    place: ThreadNumbers
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
        if self.panels.split > 1:
            return self._store_shares(arrays, at, sums)
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
        arrays = list(arrays)
        for first, width in self.panels.parts:
            if number or first or not self.is_met:
                self._meet()
            self._write_panel(self._own_room(), total, first, width)
            self._meet()
            for position, each in enumerate(self.program.stores):
                panel = Panel(self._own_room(), number, first, width)
                arrays[position] = self._store_panel(arrays[position], each, at, panel)
        return arrays

    def _store_shares(self, arrays: Values, at: Values, sums: Values) -> Values:
        """Add up a block's share of the cluster's partial sums, and compute the epilogue."""
        places = [(number, *part) for number in range(len(sums)) for part in self.panels.parts]
        room = self._own_room()
        panels = [Panel(offset(room, i * self.panels.bytes), *place) for i, place in enumerate(places)]
        # All teams have multiplied: then the tiles are no longer needed, in whose memory the sums go.
        self._meet_all()
        for panel in panels:
            self._write_panel(panel.memory, sums[panel.number], panel.first, panel.columns)
        meet_cluster()
        _Parts(self.panels, self.place, self.program.sum_element).add_up(panels)
        # The others may go once all have come here; this one meets them again at the end.
        waits.ClusterArriveOp.create()
        self._meet()
        for panel in panels:
            for position, each in enumerate(self.program.stores):
                arrays[position] = self._store_panel(arrays[position], each, at, panel)
        return arrays

    def _write_panel(self, panel: ir.Value, total: ir.Value, first: int, width: int) -> None:
        loop = LoopOp.build(self.panels.written(first, width), [self.place.thread], [])
        loop.operation.attributes[UNROLL] = ir.StringAttr.get(EARLY)
        count = self.panels.written_together
        with ir.InsertionPoint(loop.body):
            byte, register = loop.result_arguments
            for product, memory in enumerate(self._of_each(panel)):
                values = splat(0, ir.VectorType.get([count], ir.VectorType(total.type).element_type))
                for neighbour in range(count):
                    position = ir.arith.addi(register, create_index(product * self._held + neighbour))
                    values = insert_element(extract(total, position), values, create_index(neighbour))
                store(values, offset(memory, as_i32(byte)), count * _SUM_BYTES)
            YieldOp.build([])

    def _store_panel(self, array: ir.Value, each: InsertTileOp, at: Values, panel: Panel) -> ir.Value:
        """Compute what follows of a panel's sums, and store it."""
        read, neighbours = self.panels.read(panel.columns), self.panels.neighbours
        row, column = read.results[0] + self._holders.first_row(panel.number), read.results[1] + panel.first
        column, along = column + self._holders.first_column, 0 if self.panels.is_down else 1
        numbers = [dim(len(read.dims) + i) for i in range(len(at))]
        outer: list[Constraint] = list(read.constraints)
        inner: list[Constraint] = []
        for expression, bound in each.map.constraints:
            # Where all neighbours of a thread are inside or none is, that is asked once.
            is_whole = along not in expression.variables()[1] or (bound.upper + 1) % neighbours == 0
            where = (row, column) if is_whole else self.panels.moved((row, column), symbol(1))
            (outer if is_whole else inner).append((expression.substitute(numbers, where), bound))
        dims = (*read.dims, *each.map.dims)
        passes = IndexingMap(dims, read.symbols, (row, column, read.results[2]), tuple(outer))
        own = [self.place.thread] if self.panels.split == 1 else [self.place.thread, self.place.rank]
        variables, together = [*own, *at], self.panels.together
        if together == 1:
            return self._store_passes(array, each, at, panel.memory, (passes, variables), inner)
        count = IndexingMap(dims, (Interval(0, read.symbols[0].size // together - 1),), ())
        loop = LoopOp.build(count, variables, [array])
        loop.operation.attributes[UNROLL] = ir.StringAttr.get("none")
        with ir.InsertionPoint(loop.body):
            few, bounds = _few(passes, inner, together)
            of_few = (few, [*variables, *loop.symbol_arguments])
            YieldOp.build([self._store_passes(loop.carried_arguments[0], each, at, panel.memory, of_few, bounds)])
        return loop.operation.results[0]

    def _store_passes(
        self,
        array: ir.Value,
        each: InsertTileOp,
        at: Values,
        memory: ir.Value,
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
            places = [offset(each, as_i32(loop.result_arguments[2])) for each in self._of_each(memory)]
            sums = [load(place, type_, min(_CHUNK, count * _SUM_BYTES)) for place in places]
            where = (self._neighbours(passes, inner, count), [*variables, *loop.symbol_arguments])
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
        """Return the stored value of an element; ``sums`` has its sum for each product."""
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

    def _neighbours(self, passes: IndexingMap, inside: list[Constraint], count: int) -> IndexingMap:
        """Return the map of the neighbours of each pass, a dimension now, to row, column and number among them."""
        turned = {0: dim(len(passes.dims)), 1: symbol(0)}
        row, column = (each.substitute(None, turned) for each in passes.results[:2])
        bounds = tuple((each.substitute(None, turned), bound) for each, bound in inside)
        results = (*self.panels.moved((row, column), symbol(0)), symbol(0))
        return IndexingMap((*passes.dims, *passes.symbols), (Interval(0, count - 1),), results, bounds)

    def _meet(self) -> None:
        """Wait for the other threads of the team."""
        number = ir.arith.addi(as_i32(self._team), i32(_FIRST_BARRIER))
        waits.NamedBarrierOp.create([number], attributes={"threads": self._holders.size, "wait": True})

    @property
    def _held(self) -> int:
        """The sums of each product in a thread's vector."""
        return self._holders.rows * self._holders.columns // self._holders.size

    def _of_each(self, panel: ir.Value) -> Values:
        """Return where the panel of each product is, given the first one's."""
        others = range(1, len(self.program.products))
        return [panel, *(offset(panel, number * self.panels.bytes) for number in others)]

    def _meet_all(self) -> None:
        """Wait for the threads of all teams."""
        number = i32(_FIRST_BARRIER + self._holders.teams)
        waits.NamedBarrierOp.create([number], attributes={"threads": self._holders.threads, "wait": True})

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


@dataclass(frozen=True)
class _Parts:
    """The parts of sums that blocks of a cluster have: panels at the same place in each, with elements of a type."""

    panels: Panels
    place: ThreadNumbers
    element: ir.Type

    def add_up(self, panels: Sequence[Panel]) -> None:
        """Write the block's share of the whole sums over its own parts of them; all blocks have met before.

        The panels have as many columns each. All parts are read before the first sum is written, so that a thread waits
        for other blocks about once.
        """
        added = self.panels.added(panels[0].columns)
        whole = added.symbols[0].size - len(added.constraints)
        self._add([(panel, number) for panel in panels for number in range(whole)])
        if added.constraints:
            last = IndexingMap(added.dims, (), (), self._in_pass(added, whole).constraints)
            with only_if(InDomainOp.build(last, [self.place.thread, self.place.rank])):
                self._add([(panel, whole) for panel in panels])

    def _add(self, taken: Sequence[tuple[Panel, int]]) -> None:
        """Add up what a thread takes of some panels in some passes."""
        places = [self._place(*each) for each in taken]
        sums = [self._sum([self._read(place, after) for after in range(self.panels.split)]) for place in places]
        for place, total in zip(places, sums, strict=True):
            store(total, place, _CHUNK)

    @staticmethod
    def _in_pass(added: IndexingMap, number: int) -> IndexingMap:
        """Return where a thread reads in a pass."""
        at = [constant(number)]
        bounds = tuple((each.substitute(None, at), bound) for each, bound in added.constraints)
        return IndexingMap(added.dims, (), tuple(each.substitute(None, at) for each in added.results), bounds)

    def _place(self, panel: Panel, number: int) -> ir.Value:
        """Return where in a panel of this block the sums are that a thread takes in a pass."""
        map_ = self._in_pass(self.panels.added(panel.columns), number)
        return offset(panel.memory, as_i32(ApplyIndexingOp.build(map_, [self.place.thread, self.place.rank])[0]))

    def _read(self, place: ir.Value, after: int) -> ir.Value:
        """Return the part of the block so many ranks after this one: its own part is read where it is.

        The order of an element's sum is that of the ranks after the block whose share it is. Blocks read different ones
        at a time.
        """
        type_ = ir.VectorType.get([ADDED], self.element)
        if not after:
            return load(place, type_, _CHUNK)
        turned = IndexingMap(ranges((self.panels.split,)), (), ((dim(0) + after) % self.panels.split,))
        rank = as_i32(ApplyIndexingOp.build(turned, [self.place.rank])[0])
        there = waits.ClusterPointerOp.create([place, rank], [ir.llvm.PointerType.get(7)])
        return load(there.operation.results[0], type_, _CHUNK)

    def _sum(self, parts: Values) -> ir.Value:
        add = ir.arith.addi if isinstance(self.element, ir.IntegerType) else ir.arith.addf
        total = parts[0]
        for each in parts[1:]:
            total = add(total, each)
        return total


def meet_cluster() -> None:
    """Wait until all threads of the cluster are here, which then see what each has done."""
    waits.ClusterArriveOp.create()
    waits.ClusterWaitOp.create()


def _few(passes: IndexingMap, inner: list[Constraint], count: int) -> tuple[IndexingMap, list[Constraint]]:
    """Return the map of ``count`` passes, given how many such there are before, and the inner constraints for it."""
    number = {0: dim(len(passes.dims)) * count + symbol(0)}
    dims = (*passes.dims, Interval(0, passes.symbols[0].size // count - 1))
    results = tuple(each.substitute(None, number) for each in passes.results)
    outer, few = (
        [(each.substitute(None, number), bound) for each, bound in some] for some in (passes.constraints, inner)
    )
    return IndexingMap(dims, (Interval(0, count - 1),), results, tuple(outer)).with_simple_results(), few
