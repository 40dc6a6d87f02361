"""The threads of a product's blocks: a warp that copies tiles, and warp groups that multiply them (sm_90a).

Blocks compute tile after tile, so that while the last results of one are written the next is already being copied.
"""

from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.block import copies, matrices, waits
from xgpu.dialects.block.memory import ArrayPointerOp, SharedMemoryOp
from xgpu.dialects.block.tiles import InsertTileOp, TileOp
from xgpu.dialects.threads import SyncThreadsOp
from xgpu.dialects.xgpu import ApplyIndexingOp, LoopOp, YieldOp
from xgpu.emit.builders import insert
from xgpu.emit.scalar.op import constant_of
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.fragments import warpgroup_accumulators
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tensor_views import TensorView, tensor_view
from xgpu.passes.support.index_ops import create_index
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS, BlockProgram
from xgpu.passes.tiles.fragment_code import FragmentCode
from xgpu.passes.tiles.ring import Ring, as_i32, i32, offset
from xgpu.passes.tiles.structured import Values, counted, only_if
from xgpu.target_machine import WARP_SIZE

_WARPS = 4
_GROUP = _WARPS * WARP_SIZE
_SWIZZLE = 128
_ATOM_BYTES = matrices.ROW_GROUP * _SWIZZLE
_REGISTERS_OF_COPIES = 40
_REGISTER_STEP = 8


class ProductKernel:
    """Writes the threads of one kernel in the place of its blocks."""

    def __init__(self, program: BlockProgram, device: Device):
        self._program, self._device = program, device
        self._groups, self._stages = program.schedule["groups"], program.schedule["stages"]
        self._rows, self._columns = program.shape
        self._tiles = (program.left, program.right)
        self._element = ir.RankedTensorType(program.left.array.type).element_type
        self._size = copies.element_bytes(self._element)
        self._views = [self._view(tile) for tile in self._tiles]
        self._share = self._rows // self._groups // matrices.WARPGROUP_ROWS

    def _view(self, tile: TileOp) -> TensorView:
        shape = tuple(ir.RankedTensorType(tile.array.type).shape)
        view = tensor_view(tile.map, shape, self._size, _SWIZZLE)
        if isinstance(view, str):
            refuse(PASS, tile.operation, f"the tile cannot be copied as boxes: {view}")
        return view

    @cached_property
    def _tile_bytes(self) -> list[int]:
        return [view.tile[0] * view.tile[1] * self._size for view in self._views]

    def write(self) -> None:
        """Replace the blocks by the code of their threads, and give the kernel memory for tensor maps."""
        program = self._program
        blocks = program.blocks.operation
        maps = self._add_workspace()
        with ir.InsertionPoint(blocks), blocks.location:
            self._write_start(maps)
            outputs = self._write_roles(list(blocks.operands))
        for old, new in zip(blocks.results, outputs, strict=True):
            old.replace_all_uses_with(new)
        blocks.erase()

    def _add_workspace(self) -> ir.Value:
        """Give the kernel one more output, memory of its own, with room for each block's tensor maps."""
        function = self._program.function
        size = self._program.schedule["blocks"] * len(self._views) * copies.TENSOR_MAP_BYTES
        type_ = ir.RankedTensorType.get([size], ir.IntegerType.get_signless(8))
        old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        entry = function.regions[0].blocks[0]
        workspace = entry.add_argument(type_, function.location)
        new = ir.FunctionType.get([*old.inputs, type_], [*old.results, type_])
        function.attributes["function_type"] = ir.TypeAttr.get(new)
        function.attributes[attributes.WORKSPACE] = attributes.int_attribute(size)
        function.attributes[attributes.RESIDENT] = attributes.int_attribute(1)
        if attributes.ALIASES in function.attributes:
            aliases = attributes.int_array_of(function.attributes[attributes.ALIASES])
            function.attributes[attributes.ALIASES] = attributes.int_array((*aliases, -1))
        (*_, end) = entry.operations
        with ir.InsertionPoint(end):
            ir.func.return_([*end.operation.operands, workspace])
        end.operation.erase()
        return workspace

    def _write_start(self, workspace: ir.Value) -> None:
        """Compute where things are, make mbarriers and tensor maps, and let all threads of the block see them."""
        launch = self._program.function.attributes
        self._thread = _launch_index("gpu.thread_id", attributes.int_array_of(launch[attributes.BLOCK])[0])
        self._block = _launch_index("gpu.block_id", attributes.int_array_of(launch[attributes.GRID])[0])
        tiles, maps = self._stages * sum(self._tile_bytes), len(self._views) * copies.TENSOR_MAP_BYTES
        self._memory = SharedMemoryOp.build(tiles + maps + Ring.bytes(self._stages))
        self._ring = Ring(self._stages, offset(self._memory, tiles + maps))
        address = ArrayPointerOp.build(workspace)
        own = offset(address, ir.arith.muli(as_i32(self._block), i32(maps)))
        self._maps = [offset(own, number * copies.TENSOR_MAP_BYTES) for number in range(len(self._views))]
        threads = attributes.int_array_of(launch[attributes.BLOCK])[0]
        warp = self._of_thread(dim(0) // WARP_SIZE, threads)
        self._group = self._of_thread(dim(0) // _GROUP, threads)
        self._is_first_lane = _equal(self._of_thread(dim(0) % WARP_SIZE, threads), 0)
        for number, (view, tile) in enumerate(zip(self._views, self._tiles, strict=True)):
            with only_if(_equal(warp, number)):
                self._encode(view, tile, number, offset(self._memory, tiles + number * copies.TENSOR_MAP_BYTES))
        with only_if(_equal(self._thread, 0)):
            self._ring.initialize(self._groups * _WARPS)
            waits.FenceOp.create(attributes={"kind": "mbarrier_init"})
        SyncThreadsOp.build([])

    def _encode(self, view: TensorView, tile: TileOp, number: int, staging: ir.Value) -> None:
        copies.EncodeTensorMapOp.create(
            [self._maps[number], staging, ArrayPointerOp.build(tile.array)],
            attributes={
                "element": self._element,
                "shape": view.shape,
                "strides": view.strides(self._size),
                "box": view.box,
                "swizzle": str(_SWIZZLE),
            },
        )

    def _write_roles(self, outputs: Values) -> Values:
        """Write what each warp group does; return the arrays as those that multiply have left them."""
        multiplies = ir.arith.cmpi(ir.arith.CmpIPredicate.ult, self._thread, create_index(self._groups * _GROUP))
        op = ir.Operation.create("scf.if", results=[each.type for each in outputs], operands=[multiplies], regions=2)
        with ir.InsertionPoint(op.regions[0].blocks.append()):
            self._set_registers(self._registers, more=True)
            ir.scf.yield_(self._write_consumers(outputs))
        with ir.InsertionPoint(op.regions[1].blocks.append()):
            self._set_registers(_REGISTERS_OF_COPIES, more=False)
            with only_if(_equal(self._thread, self._groups * _GROUP)):
                self._write_producer()
            ir.scf.yield_(outputs)
        return list(op.results)

    @property
    def _registers(self) -> int:
        """Registers of a thread that multiplies: what those that copy leave."""
        left = self._device.registers_per_sm // _GROUP - _REGISTERS_OF_COPIES
        return left // self._groups // _REGISTER_STEP * _REGISTER_STEP

    def _set_registers(self, count: int, more: bool) -> None:
        if self._groups > 1:
            waits.SetRegistersOp.create(attributes={"count": count, "more": more})

    def _write_producer(self) -> None:
        for map_ in self._maps:
            copies.AcquireTensorMapOp.create([map_])
        with self._tiles_of_block([i32(0), i32(0)]) as tiles:
            at = self._numbers(tiles.counter)
            with self._step_loop(tiles.carried) as steps:
                slot, phase = steps.carried
                self._ring.wait_empty(slot, phase)
                full = self._ring.full(slot)
                waits.MbarrierExpectOp.create([full, i32(sum(self._tile_bytes))])
                for number in range(len(self._views)):
                    self._copy(number, slot, full, [*at, steps.counter])
                steps.carried = list(self._ring.next(slot, phase))
            tiles.carried = steps.results

    def _copy(self, number: int, slot: ir.Value, full: ir.Value, at: Values) -> None:
        view, map_ = self._views[number], self._tiles[number].map
        to = self._buffer(number, slot)
        for panel in range(view.panels):
            box = offset(to, panel * view.rows * _SWIZZLE)
            where = IndexingMap(map_.dims, (), view.starts(panel))
            coordinates = [as_i32(each) for each in ApplyIndexingOp.build(where, at)]
            copies.TensorLoadOp.create([box, self._maps[number], full, *coordinates])

    def _write_consumers(self, outputs: Values) -> Values:
        accumulators = [self._zeros() for _ in range(self._share)]
        with self._tiles_of_block([*outputs, i32(0), i32(0)]) as tiles:
            *arrays, slot, phase = tiles.carried
            at = self._numbers(tiles.counter)
            with self._step_loop([*accumulators, slot, phase]) as steps:
                *sums, slot, phase = steps.carried
                self._ring.wait_full(slot, phase)
                sums = self._multiply(sums, slot, steps.counter)
                with only_if(self._is_first_lane):
                    waits.MbarrierArriveOp.create([self._ring.empty(slot)])
                steps.carried = [*sums, *self._ring.next(slot, phase)]
            *sums, slot, phase = steps.results
            tiles.carried = [*self._write_results(arrays, at, sums), slot, phase]
        return tiles.results[: len(outputs)]

    def _multiply(self, sums: Values, slot: ir.Value, step: ir.Value) -> Values:
        """Add the products of a step's tiles, and wait for them."""
        matrices.WarpgroupFenceOp.create()
        left, right = (self._buffer(number, slot) for number in range(2))
        contracted = matrices.contracted(str(self._element))
        depth = self._views[0].tile[1]
        for part in range(depth // contracted):
            accumulate = _boolean(True) if part else ir.arith.cmpi(ir.arith.CmpIPredicate.ne, step, create_index(0))
            b = offset(right, self._advance(1, part * contracted))
            for number in range(self._share):
                a = offset(self._own_rows(left, number), self._advance(0, part * contracted))
                sums[number] = matrices.WarpgroupMmaOp.create(
                    [sums[number], a, b, accumulate],
                    [sums[number].type],
                    {
                        "a_element": self._element,
                        "b_element": self._element,
                        "a_layout": self._layout(0),
                        "b_layout": self._layout(1),
                    },
                ).operation.results[0]
        matrices.WarpgroupCommitOp.create()
        types = [each.type for each in sums]
        return list(matrices.WarpgroupWaitOp.create(sums, types, {"pending": 0}).operation.results)

    def _layout(self, number: int) -> matrices.MatrixLayout:
        """Return where an operand lies: transposed, if the contracted dimension is not the contiguous one."""
        view = self._views[number]
        panel = view.rows * _SWIZZLE
        return matrices.MatrixLayout(_SWIZZLE, _ATOM_BYTES, panel, transposed=self._is_transposed(number))

    def _is_transposed(self, number: int) -> bool:
        return self._views[number].inner != 1 - number

    def _advance(self, number: int, elements: int) -> int:
        """Return how many bytes after its begin an operand goes on after so many contracted elements."""
        return elements * (_SWIZZLE if self._is_transposed(number) else self._size)

    def _own_rows(self, left: ir.Value, number: int) -> ir.Value:
        """Return where a warp group's rows of the left operand begin, those of its product ``number``."""
        rows = matrices.WARPGROUP_ROWS
        if self._is_transposed(0):
            step = self._views[0].rows * _SWIZZLE * (rows * self._size // _SWIZZLE)
        else:
            step = rows * _SWIZZLE
        first = ir.arith.muli(as_i32(self._group), i32(self._share * step))
        return offset(offset(left, first), number * step)

    def _write_results(self, arrays: Values, at: Values, sums: Values) -> Values:
        """Compute what follows of each element that the thread holds, and store it."""
        for number, total in enumerate(sums):
            for position, store in enumerate(self._program.stores):
                arrays[position] = self._write_store(arrays[position], store, at, number, total)
        return arrays

    def _write_store(self, array: ir.Value, store: InsertTileOp, at: Values, number: int, total: ir.Value) -> ir.Value:
        program, threads = self._program, self._groups * _GROUP
        own = warpgroup_accumulators(self._columns)
        group = dim(0) // _GROUP
        row, column, place = (each.substitute([dim(0) % _GROUP]) for each in own.results)
        row = row + (group * self._share + number) * matrices.WARPGROUP_ROWS
        numbers = [dim(1 + i) for i in range(len(at))]
        inside = tuple((each.substitute(numbers, [row, column]), bound) for each, bound in store.map.constraints)
        map_ = IndexingMap((Interval(0, threads - 1), *store.map.dims), own.symbols, (row, column, place), inside)
        loop = LoopOp.build(map_, [self._thread, *at], [array])
        with ir.InsertionPoint(loop.body):
            row_, column_, place_ = loop.result_arguments
            element = _extract(total, place_)
            checked = IndexingMap(store.map.dims, store.map.symbols, (), store.map.constraints)
            code = FragmentCode(at, [row_, column_], {program.total: element}, checked)
            scalar = code.value(store.tile)
            indices = ApplyIndexingOp.build(store.map, [*at, row_, column_])
            carried = loop.carried_arguments[0]
            YieldOp.build([insert(scalar, carried, indices)])
        return loop.operation.results[0]

    def _tiles_of_block(self, inits: Sequence[ir.Value]):  # type: ignore[no-untyped-def]
        grid = self._program.blocks.grid
        count = grid[0] * grid[1] * grid[2]
        step = create_index(self._program.schedule["blocks"])
        return counted(self._block, create_index(count), step, inits)

    def _step_loop(self, inits: Sequence[ir.Value]):  # type: ignore[no-untyped-def]
        return counted(create_index(0), create_index(self._program.steps.count), create_index(1), inits)

    def _numbers(self, tile: ir.Value) -> Values:
        """Return the numbers in the grid of a block's next tile: bands of rows, column by column."""
        batch, down, along = self._program.blocks.grid
        band = self._program.schedule["band"]
        each = down * along
        matrix, in_matrix = dim(0) // each, dim(0) % each
        first, in_band = in_matrix // (band * along) * band, in_matrix % (band * along)
        results = (matrix, first + in_band % band, in_band // band)
        map_ = IndexingMap(ranges((batch * each,)), (), results).simplify()
        return ApplyIndexingOp.build(map_, [tile])

    def _buffer(self, number: int, slot: ir.Value) -> ir.Value:
        """Return where the ring has an operand's tile."""
        first = self._stages * sum(self._tile_bytes[:number])
        return offset(offset(self._memory, first), ir.arith.muli(slot, i32(self._tile_bytes[number])))

    def _of_thread(self, expression: AffineExpr, threads: int) -> ir.Value:
        return ApplyIndexingOp.build(IndexingMap(ranges((threads,)), (), (expression,)), [self._thread])[0]

    def _zeros(self) -> ir.Value:
        element = ir.RankedTensorType(self._program.total.type).element_type
        type_ = ir.VectorType.get([self._columns * matrices.WARPGROUP_ROWS // _GROUP], element)
        zero = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 0.0))
        return constant_of(type_, zero)


def _extract(vector: ir.Value, position: ir.Value) -> ir.Value:
    return ir.Operation.create(
        "vector.extract",
        results=[ir.VectorType(vector.type).element_type],
        operands=[vector, position],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([-(1 << 63)])},
    ).results[0]


def _equal(value: ir.Value, number: int) -> ir.Value:
    return ir.arith.cmpi(ir.arith.CmpIPredicate.eq, value, create_index(number))


def _boolean(value: bool) -> ir.Value:
    type_ = ir.IntegerType.get_signless(1)
    return constant_of(type_, ir.IntegerAttr.get(type_, int(value)))


def _launch_index(name: str, bound: int) -> ir.Value:
    index = ir.IndexType.get()
    described = {
        "dimension": ir.Attribute.parse("#gpu.dim<x>"),
        "upper_bound": ir.IntegerAttr.get(index, bound),
    }
    return ir.Operation.create(name, results=[index], attributes=described).results[0]
