"""Tiles that are copied as boxes between arrays and shared memory, where their rows of 128 bytes are swizzled."""

from dataclasses import replace

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.block import copies
from xgpu.dialects.block.matrices import MatrixLayout
from xgpu.dialects.block.memory import ArrayPointerOp
from xgpu.dialects.block.tiles import GatherTileOp, InsertTileOp, ReadTile, TileOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.dtypes import DType
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.gathered_tiles import Gathered, TileParts, gathered_view
from xgpu.indexing.tiles.product_maps import ROW_BYTES, narrow_row_bytes, narrow_view, order_problem
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import PASS, read_tiles
from xgpu.passes.tiles.fragment_code import FragmentCode
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
    """The ``parts`` of a tile and the tiles that their ``numbers`` are of."""

    numbers: tuple[ir.Value, ...]
    parts: TileParts

    @classmethod
    def of(cls, op: GatherTileOp, shape: tuple[int, ...], size: int) -> "tuple[Lookup | None, TensorView] | str":
        """Return how a tile is looked up, of an array of a shape and elements of so many bytes; or why it is not."""
        reads = [each for value in op.numbers for each in read_tiles(op.operation, value, "tiles of integers", ())]
        gathered = Gathered(op.map, tuple(each.map for each in reads), len(op.numbers))
        found = gathered_view(gathered, shape, size, SWIZZLE)
        return found if isinstance(found, str) else (cls(tuple(op.numbers), found[0]), found[1])

    @property
    def reached(self) -> tuple[Interval, ...]:
        """The ranges of the dimensions of a part's map, with numbers beyond the last one."""
        *dims, part = self.parts.map.dims
        count = len(dims) - len(self.numbers)
        return (*dims[:count], *(Interval(0, each.upper + 1) for each in dims[count:]), part)

    def at(self, place: Values, part: int) -> Values:
        """Compute the numbers of a part: beyond the last ones if it has no elements, so that its box is of zeros."""
        where = [*place, create_index(part)]
        element = [create_index(0), create_index(0)]
        element[self.parts.along] = create_index(part * self.parts.rows)
        code = FragmentCode(place, element, {}, IndexingMap((), (), ()))
        inside = InDomainOp.build(self.parts.inside, where) if self.parts.inside.constraints else None
        clamps, found = self.parts.map.dims[len(place) : -1], []
        for value, clamp in zip(self.numbers, clamps, strict=True):
            number = clamped(code.value(value), dtype_of(value), clamp.upper)
            if inside is not None:
                number = ir.arith.select(inside, number, constant(clamp.upper + 1, number.type))
            found.append(ir.arith.index_cast(ir.IndexType.get(), number))
        return found


def clamped(number: ir.Value, dtype: DType, most: int) -> ir.Value:
    """Return an integer from 0 to ``most``, in a type that has room for one more: i32, as coordinates are, if it has.

    What has no sign is as large in a wider type; in the widest it may be so large that there it would have one.
    """
    bits = max(dtype.bits, 32 if most + 1 < 1 << 31 else 64)
    extend = ir.arith.extui if dtype.is_unsigned else ir.arith.extsi
    wide = number if bits == dtype.bits else extend(integer_type(bits), number)
    low, high = (constant(each, wide.type) for each in (0, most))
    if dtype.is_unsigned:
        return ir.arith.minui(wide, high)
    return ir.arith.minsi(ir.arith.maxsi(wide, low), high)


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
        shape = tuple(type_.shape)
        if isinstance(op, GatherTileOp):
            found = Lookup.of(op, shape, size)
        else:
            view = tensor_view(op.map, shape, size, SWIZZLE)
            found = view if isinstance(view, str) else (None, view)
        if isinstance(found, str):
            refuse(PASS, op.operation, f"the tile cannot be copied as boxes: {found}")
        lookup, view = found
        return cls(view, op.map if lookup is None else lookup.parts.map, array, type_.element_type, lookup=lookup)

    @property
    def parts(self) -> int:
        """The parts of the tile that are copied one by one, as they have numbers of their own."""
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
