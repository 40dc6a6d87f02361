"""Tiles that are copied as boxes between arrays and shared memory, where their rows of 128 bytes are swizzled."""

from dataclasses import replace

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.block import copies
from xgpu.dialects.block.matrices import MatrixLayout
from xgpu.dialects.block.memory import ArrayPointerOp
from xgpu.dialects.block.tiles import GatherTileOp, InsertTileOp, ReadTile, TileOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.emit.builders import extract
from xgpu.indexing.access import ranges, shape_of
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.gathered_tiles import Gathered, TileParts, gathered_view
from xgpu.indexing.tiles.product_maps import ROW_BYTES, narrow_row_bytes, narrow_view, order_problem
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.ring import as_i32
from xgpu.passes.tiles.structured import Values
from xgpu.records import dataclass
from xgpu.structure import dtype_of

SWIZZLE = ROW_BYTES
"""Bytes of a row of a box, within which chunks are permuted."""
ATOM_BYTES = 8 * SWIZZLE
"""Bytes after which the permutation repeats."""


@dataclass(frozen=True)
class Lookup:
    """The ``parts`` of a tile and the ``tables`` that their numbers are read from."""

    tables: tuple[ir.Value, ...]
    parts: TileParts

    @property
    def reached(self) -> tuple[Interval, ...]:
        """The ranges of the dimensions of a part's map, with numbers beyond the last one."""
        *dims, part = self.parts.map.dims
        count = len(dims) - len(self.tables)
        return (*dims[:count], *(Interval(0, each.upper + 1) for each in dims[count:]), part)

    def numbers(self, at: Values, part: int) -> Values:
        """Read the numbers of a part: beyond the last ones if it has no elements, so that its box is of zeros."""
        where, found = [*at, create_index(part)], []
        clamps = self.parts.map.dims[len(at) :]
        for table, map_, clamp in zip(self.tables, self.parts.numbers, clamps, strict=False):
            inside = InDomainOp.build(map_, where) if map_.constraints else None
            indices = ApplyIndexingOp.build(replace(map_, constraints=()), where) if map_.results else []
            if inside is not None:
                # What is not inside is read where the table begins, and dropped.
                indices = [ir.arith.select(inside, each, create_index(0)) for each in indices]
            read = _widened(extract(table, indices), clamp.upper + 1)
            low, high, beyond = (constant(each, read.type) for each in (0, clamp.upper, clamp.upper + 1))
            number = ir.arith.minsi(ir.arith.maxsi(read, low), high)
            if inside is not None:
                number = ir.arith.select(inside, number, beyond)
            found.append(ir.arith.index_cast(ir.IndexType.get(), number))
        return found


def _widened(number: ir.Value, most: int) -> ir.Value:
    """Return an integer in a type that has room for so large ones: i32, as coordinates are, if that suffices."""
    width = ir.IntegerType(number.type).width
    bits = max(width, 32 if most < 1 << 31 else 64)
    return number if bits == width else ir.arith.extsi(integer_type(bits), number)


@dataclass(frozen=True)
class Boxes:
    """A tile that is copied as boxes between an array and shared memory, with rows of so many bytes.

    If it has a ``lookup``, ``map`` and ``view`` are those of its parts.
    """

    view: TensorView
    map: IndexingMap
    array: ir.Value
    element: ir.Type
    row_bytes: int = SWIZZLE
    lookup: Lookup | None = None

    @classmethod
    def of(cls, op: ReadTile | InsertTileOp, array: ir.Value) -> "Boxes":
        """Return the boxes of a tile of ``array``. Raises `CompilerError` for one that cannot be copied so."""
        type_ = ir.RankedTensorType(array.type)
        if not (size := copies.element_bytes(type_.element_type)):
            refuse(PASS, op.operation, f"the tile cannot be copied as boxes: elements of {type_.element_type}")
        shape, lookup, map_ = tuple(type_.shape), None, op.map
        if isinstance(op, GatherTileOp):
            sizes = tuple(tuple(shape_of(each)) for each in op.tables)
            found = gathered_view(Gathered(op.map, op.numbers, sizes), shape, size, SWIZZLE)
            parts, view = (None, found) if isinstance(found, str) else found
            if parts is not None:
                lookup, map_ = Lookup(tuple(op.tables), parts), parts.map
        else:
            view = tensor_view(op.map, shape, size, SWIZZLE)
        if isinstance(view, str):
            refuse(PASS, op.operation, f"the tile cannot be copied as boxes: {view}")
        return cls(view, map_, array, type_.element_type, lookup=lookup)

    @property
    def parts(self) -> int:
        """The parts of the tile that are copied one by one, as their numbers are read from tables."""
        return 1 if self.lookup is None else self.lookup.parts.count

    @property
    def element_bytes(self) -> int:
        """The bytes of an element."""
        return copies.element_bytes(self.element)

    @property
    def bytes(self) -> int:
        """The bytes of the tile."""
        return self.parts * self.view.tile[0] * self.view.tile[1] * self.element_bytes

    @property
    def panel_bytes(self) -> int:
        """The bytes of a box of the whole tile's rows."""
        return self.parts * self.view.rows * self.row_bytes

    @classmethod
    def of_narrow(cls, tile: TileOp) -> "Boxes":
        """Return the boxes of a tile whose elements threads read, to compute an operand of products from them.

        They are boxes of bytes, which may have two elements each.
        """
        type_, bits = ir.RankedTensorType(tile.array.type), dtype_of(tile.tile).storage_bits
        view = narrow_view(tile.map, tuple(type_.shape), bits)
        if isinstance(view, str):
            refuse(PASS, tile.operation, f"the tile cannot be copied as boxes: {view}")
        element = ir.IntegerType.get_signless(8) if bits < 8 else type_.element_type
        return cls(view, tile.map, tile.array, element, narrow_row_bytes(tile.map, bits))

    @classmethod
    def of_operand(cls, tile: ReadTile, number: int) -> "Boxes":
        """Return the boxes of an operand's tile, which products read as it lies in memory."""
        boxes = cls.of(tile, tile.array)
        if problem := order_problem(boxes.view, number, dtype_of(tile.tile)):
            refuse(PASS, tile.operation, problem)
        # Tensor cores would cut off what tf32 has not.
        is_rounded = isinstance(boxes.element, ir.F32Type)
        return replace(boxes, element=ir.FloatTF32Type.get()) if is_rounded else boxes

    @classmethod
    def of_result(cls, op: InsertTileOp, array: ir.Value) -> "Boxes":
        """Return the boxes of a tile that is written, of whose rows threads hold parts: they are those of memory."""
        boxes = cls.of(op, array)
        if boxes.view.inner != 1:
            refuse(PASS, op.operation, "expected elements of a row to be neighbours in memory where results are staged")
        return boxes

    def layout(self, contracted: int) -> MatrixLayout:
        """Return where the tile is in shared memory, as products read it, given its contracted dimension."""
        return MatrixLayout(SWIZZLE, ATOM_BYTES, self.panel_bytes, transposed=self.view.inner != contracted)

    def encode(self, map_: ir.Value, staging: ir.Value, rows: int) -> None:
        """Write the tensor map of boxes of ``rows`` rows; a warp executes it."""
        described = {
            "element": copies.copied_as(self.element),
            "shape": self.view.shape,
            "strides": self.view.strides(self.element_bytes),
            "box": self.view.box(rows),
            "swizzle": str(self.row_bytes),
        }
        copies.EncodeTensorMapOp.create([map_, staging, ArrayPointerOp.build(self.array)], attributes=described)

    def coordinates(self, at: Values, panel: ir.Value, row: ir.Value) -> Values:
        """Return where the box of a panel that begins at a row lies in the array, for the map's dimensions."""
        dims = self.map.dims if self.lookup is None else self.lookup.reached
        count, more = len(dims), ranges((self.view.panels, self.view.rows))
        where = IndexingMap((*dims, *more), (), self.view.starts(dim(count), dim(count + 1)))
        return [as_i32(each) for each in ApplyIndexingOp.build(where, [*at, panel, row])]


def add_workspace(function: ir.Operation, size: int) -> ir.Value:
    """Give a kernel ``size`` bytes, and return them; a multiprocessor is to have room for one of its blocks."""
    type_ = ir.RankedTensorType.get([size], ir.IntegerType.get_signless(8))
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    entry = function.regions[0].blocks[0]
    workspace = entry.add_argument(type_, function.location)
    new = ir.FunctionType.get([*old.inputs, type_], [*old.results, type_])
    function.attributes["function_type"] = ir.TypeAttr.get(new)
    function.attributes[attributes.WORKSPACE] = attributes.int_attribute(size)
    function.attributes[attributes.RESIDENT] = attributes.int_attribute(1)
    (*_, end) = entry.operations
    with ir.InsertionPoint(end):
        ir.func.return_([*end.operation.operands, workspace])
    end.operation.erase()
    return workspace
