"""Operands of products of tiles: where their elements are, and fragments of them for instructions of a warp."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.block.matrices import LoadMatrixOp
from xgpu.dtypes import DType
from xgpu.indexing.access import Shape
from xgpu.indexing.affine import AffineExpr, constant, delinearize, symbol
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.interval import Interval
from xgpu.passes.support import arith_builder as b
from xgpu.passes.tiles.blocks.elements import ElementCode
from xgpu.passes.tiles.blocks.memory.shared import SharedTile
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.products.fragments import COLUMNS, LANE, FragmentLayout, Indices
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.vectors import from_elements, part
from xgpu.records import dataclass
from xgpu.structure import dtype_of, producer

_EIGHT = 8
_ROW_LANES = 4
_ROW_BYTES = 16
_WORD_BYTES = 4
LEFT, RIGHT = 0, 1


@dataclass(frozen=True, eq=False)
class Operand:
    """An operand of a product, by its number: a matrix of rows, or of columns, and of ``contracted`` elements each."""

    state: State
    product: ir.Operation
    layout: FragmentLayout
    number: int

    @property
    def tile(self) -> ir.Value:
        """Its value."""
        return self.product.operands[self.number]

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return dtype_of(self.tile)

    @property
    def _contracted(self) -> Shape:
        return tuple(each.size for each in accesses(self.product)[self.number].map.symbols)

    @property
    def contracted(self) -> int:
        """The number of terms of a sum."""
        return math.prod(self._contracted)

    @property
    def free(self) -> int:
        """The rows of the left operand, the columns of the right one."""
        return self.layout.rows if self.number == LEFT else self.layout.columns

    def at(self, matrix: AffineExpr, free: AffineExpr, contracted: AffineExpr) -> Indices:
        """Return the indices of an element; numbers beyond the last one begin again."""
        row, column = (free, constant(0)) if self.number == LEFT else (constant(0), free)
        result = self.layout.indices(matrix, row, column)
        symbols = delinearize(contracted % self.contracted, self._contracted)
        return tuple(each.substitute(result, symbols) for each in accesses(self.product)[self.number].map.results)

    def in_memory(self) -> SharedTile | None:
        """Return the tile in shared memory that has the elements, maybe at other indices; None if there is none."""
        tile, shared = self.tile, self.state.shared
        while tile not in shared:
            if self.state.kernel.is_kept(tile):
                return None
            op = producer(tile)
            if op.name.startswith("xgpu.") or access_kind(op) != "indexing" or len(op.operands) != 1:
                return None
            tile = op.operands[0]
        return shared[tile]

    def position(self, space: AddressSpace, matrix: AffineExpr, free: AffineExpr, contracted: AffineExpr) -> AffineExpr:
        """Return the number of an element in that tile, before a swizzle, in its simple form."""
        tile, at, shared = self.tile, self.at(matrix, free, contracted), self.state.shared
        while tile not in shared:
            op = producer(tile)
            (access,) = accesses(op)
            at = tuple(space.simple(each.substitute(at)) for each in access.map.results)
            tile = op.operands[0]
        return space.simple(shared[tile].layout.position(at))


@dataclass(frozen=True, eq=False)
class FragmentSource:
    """Reads a warp's fragments of an operand: of 16-bit elements 16 at a time along the contraction, of f32 eight."""

    operand: Operand
    matrix: AffineExpr

    @property
    def _per_word(self) -> int:
        return 1 if self.operand.dtype.bits == 32 else 2

    @property
    def depth(self) -> int:
        """Contracted elements of a fragment."""
        return _EIGHT * self._per_word

    def read(self, space: AddressSpace, code: ElementCode, first: int, depth: AffineExpr) -> list[ir.Value]:
        """Read the fragments of 16 rows, or of 8 or 16 columns, from the number ``first`` on: one, or two side by side.

        They are those of the contracted elements from ``depth`` on. Fragments of rows are vectors of four i32, those of
        columns of two.
        """
        count = 1 if self.operand.number == LEFT else min(2, self.operand.layout.held_across - first)
        address = self._matrix_address(space, first, count, depth)
        words = 4 if self.operand.number == LEFT else 2
        if address is None:
            found = [self._gathered(space, code, first + each, depth, words) for each in range(count)]
        else:
            pointer, transposed = address
            type_ = ir.VectorType.get([words * count], b.integer_type(32))
            whole = LoadMatrixOp.create([pointer], [type_], {"transposed": transposed}).operation.results[0]
            found = [part(whole, words * each, words) if count > 1 else whole for each in range(count)]
        return [self._prepared(space, each, depth) for each in found]

    def _first_free(self, number: int) -> AffineExpr:
        layout = self.operand.layout
        if self.operand.number == LEFT:
            return layout.first_row(number)
        return layout.first_column + number * COLUMNS

    def _matrix_address(
        self, space: AddressSpace, first: int, count: int, depth: AffineExpr
    ) -> tuple[ir.Value, bool] | None:
        """Return the address of the row of 16 bytes that a lane gives, and whether it goes along the free dimension.

        Lane ``8 m + r`` gives row ``r`` of matrix ``m``: of the left operand first the upper and lower ones, of the
        right one first those with the first and last contracted elements. None if rows do not lie together.
        """
        tile = self.operand.in_memory()
        if tile is None:
            return None
        eight = LANE // _EIGHT % (4 if self.operand.number == LEFT or count > 1 else 2)
        upper, later = (eight % 2, eight // 2) if self.operand.number == LEFT else (eight // 2, eight % 2)
        free = self._first_free(first) + upper * _EIGHT
        elements = _ROW_BYTES * 8 // self.operand.dtype.bits
        contracted = depth + later * elements
        rows = space.with_lanes(elements)
        for transposed in (False, True) if self._per_word == 2 else (False,):
            row, along = LANE % _EIGHT, symbol(0)
            where = (free + along, contracted + row) if transposed else (free + row, contracted + along)
            runs = rows.runs(self.operand.position(rows, self.matrix, *where), tile.layout.neighbours)
            if [each.count for each in runs] == [elements]:
                return tile.address(rows, runs[0].first), transposed
        return None

    def _gathered(self, space: AddressSpace, code: ElementCode, number: int, depth: AffineExpr, words: int) -> ir.Value:
        """Read the elements of a fragment one by one, or two neighbours at a time."""
        found = []
        for word in range(words):
            lower, later = (word % 2, word // 2) if self.operand.number == LEFT else (0, word)
            free = self._first_free(number) + LANE // _ROW_LANES + lower * _EIGHT
            at = self.operand.at(self.matrix, free, depth + self._contracted_of(later))
            scalars = code.lanes(self.operand.tile, at)
            pair = scalars if len(scalars) == self._per_word else scalars * self._per_word
            found.append(_as_word(pair))
        return from_elements(found)

    def _contracted_of(self, later: int) -> AffineExpr:
        """Return which contracted elements of a fragment a lane has in a word."""
        half = later * self.depth // 2
        own = LANE % _ROW_LANES * self._per_word + half
        return own + symbol(0) if self._per_word > 1 else own

    def lanes_of(self, space: AddressSpace) -> AddressSpace:
        """Return the space for the elements of a word."""
        return space.with_lanes(self._per_word)

    def _prepared(self, space: AddressSpace, fragment: ir.Value, depth: AffineExpr) -> ir.Value:
        """Return a fragment with zeros beyond the last contracted element, rounded where instructions would cut off."""
        masked = self._masked(space, fragment, depth)
        return b.as_tf32(masked) if self._per_word == 1 else masked

    def _masked(self, space: AddressSpace, fragment: ir.Value, depth: AffineExpr) -> ir.Value:
        if self.operand.contracted % self.depth == 0:
            return fragment
        last = Interval(0, self.operand.contracted - 1)
        words = ir.VectorType(fragment.type).shape[0]
        pairs = space.with_lanes(self._per_word)
        masks = []
        for word in range(words):
            later = word // 2 if self.operand.number == LEFT else word
            position = depth + self._contracted_of(later)
            masks.append([pairs.holds([(pairs.at_lane(position, lane), last)]) for lane in range(self._per_word)])
        if all(each is None for mask in masks for each in mask):
            return fragment
        return b.and_(fragment, from_elements([_mask(each) for each in masks]))


def _mask(holds: Sequence[ir.Value | None]) -> ir.Value:
    """Return the bits of a word whose elements are there."""
    bits, type_ = 32 // len(holds), b.integer_type(32)
    found = b.constant(0, type_)
    for number, each in enumerate(holds):
        own = b.constant(((1 << bits) - 1) << (number * bits), type_)
        found = b.or_(found, own if each is None else b.select(each, own, 0))
    return found


def _as_word(scalars: Sequence[ir.Value]) -> ir.Value:
    """Return elements of 32 bits together as an i32."""
    if len(scalars) == 1:
        return b.bitcast(scalars[0], b.integer_type(32))
    type_ = ir.VectorType.get([1], b.integer_type(32))
    whole = ir.Operation.create("vector.bitcast", results=[type_], operands=[from_elements(scalars)]).results[0]
    position: dict[str, ir.Attribute] = {"static_position": ir.DenseI64ArrayAttr.get([0])}
    return ir.Operation.create(
        "vector.extract", results=[type_.element_type], operands=[whole], attributes=position
    ).results[0]
