"""Chains of products without a softmax: rows that are added up, each times what is computed from other products.

Gradients of attention have this form. With the largest logits and the sums of weights of all rows at hand, weights are
computed from the logits element by element, and so is what the gradients of queries and keys are made with.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from xgpu import ir
from xgpu.analysis.attention.attention import longest, products_behind
from xgpu.analysis.attention.places import DOT, keeps_numbers, then
from xgpu.analysis.attention.weighted import Weighted
from xgpu.indexing.access import Shape, identity_map, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of

MOVED = ("stablehlo.transpose", "stablehlo.reshape", "stablehlo.convert")
"""The operations that may follow the last product in a chain: each element of the result is one of its own."""


class SumSpace(NamedTuple):
    """The indices of what is computed between products.

    A block has rows along ``resident``, and goes along ``stepped`` and, in each step of that, along all ``loops``.
    Along the ``others`` there are chains of their own.
    """

    shape: Shape
    resident: int
    stepped: int
    loops: tuple[int, ...]
    others: tuple[int, ...]


@dataclass(frozen=True)
class ArrayProduct:
    """A product ``op`` of arrays, whose operand ``left`` has rows; ``map`` leads from the space to its result."""

    op: ir.Operation
    map: IndexingMap
    left: int

    @property
    def result(self) -> ir.Value:
        """The result of the product."""
        return self.op.results[0]

    def operand(self, number: int) -> ir.Value:
        """Return the left operand, of number 0, or the right one."""
        return self.op.operands[self._position(number)]

    def operand_map(self, number: int) -> IndexingMap:
        """Return (space)[contracted] -> the indices of the left operand, of number 0, or of the right one."""
        return then(self.map, accesses(self.op)[self._position(number)].map)

    @property
    def width(self) -> int:
        """The elements that it contracts."""
        return self.operand_map(0).symbols[0].size

    def _position(self, number: int) -> int:
        return self.left if number == 0 else 1 - self.left


@dataclass(frozen=True)
class ComputedSum:
    """The ``sums`` whose weights are computed from some products; their ``indices`` are given by those of the space."""

    sums: Weighted
    indices: tuple[AffineExpr, ...]
    result: ir.Value
    products: int


@dataclass(frozen=True)
class ComputedElements:
    """A ``result`` each element of which is computed from one of each product.

    Its ``indices`` are given by those of the space.
    """

    indices: tuple[AffineExpr, ...]
    result: ir.Value


@dataclass(frozen=True)
class ChainedSums:
    """All ``sums`` of a chain, and the ``products`` of arrays that their weights are computed from.

    Of what lies between, ``elements`` are results, too.
    """

    space: SumSpace
    products: tuple[ArrayProduct, ...]
    sums: tuple[ComputedSum, ...]
    elements: tuple[ComputedElements, ...] = ()

    @property
    def element_bytes(self) -> int:
        """The bytes of an element of the products' operands."""
        return dtype_of(self.products[0].operand(0)).bits // 8


def chained_sums(
    results: Sequence[ir.Value],
    among: Collection[ir.Operation] | None = None,
    made: Container[ir.Value] | None = None,
) -> ChainedSums | str:
    """Return the chain that computes and then only moves these results, or why there is none.

    Its products are those ``among`` some, if these are given: what others compute are arrays. ``made`` has their
    results and at least all that is made of them element by element, if that is known: nothing else is followed. At
    least one of the results is a sum; others may be what is computed from products element by element.
    """
    behind = [_behind(result, among, made) for result in results]
    found = [each for each in behind if each is not None]
    sums = [each for each in found if each.sums is not None]
    if not sums or len(found) != len(results):
        return "expected results that are sums of rows, each times what is computed from other products"
    first = next(iter(sums[0].products))
    reached = [_Reached.of(each, first) for each in found]
    known = [each for each in reached if each is not None]
    if len(known) != len(reached):
        return "expected operations that keep or exchange the dimensions of products"
    space = _space(first, known)
    if isinstance(space, str):
        return space
    maps: dict[ir.Operation, IndexingMap] = {}
    for each in known:
        for op, map_ in each.maps.items():
            if maps.setdefault(op, map_) != map_:
                return "expected one element of each product for each weight"
    lefts = {op: _left(op, map_, space) for op, map_ in maps.items()}
    products = tuple(ArrayProduct(op, map_, left) for op, map_ in maps.items() if (left := lefts[op]) is not None)
    if len(products) != len(maps):
        return "expected products whose operands have either the rows of a block, or those that it goes along"
    given = list(zip(known, results, strict=True))
    return ChainedSums(
        space,
        products,
        tuple(ComputedSum(sum_, each.indices, result, len(each.maps)) for each, result in given if (sum_ := each.sums)),
        tuple(ComputedElements(each.indices, result) for each, result in given if each.sums is None),
    )


def moved_from(value: ir.Value) -> ir.Value:
    """Return the value that one is made of by operations of `MOVED` that keep numbers."""
    while (op := defining_op(value)) is not None and op.name in MOVED and keeps_numbers(op):
        value = op.operands[0]
    return value


class _Behind(NamedTuple):
    """A value, the weights of ``sums`` if there are any, and the maps from its indices to the products behind it."""

    value: ir.Value
    products: Mapping[ir.Operation, IndexingMap]
    sums: Weighted | None


def _behind(
    result: ir.Value, among: Collection[ir.Operation] | None, made: Container[ir.Value] | None
) -> _Behind | None:
    """Return the weights of the sums that a result is moved from, or else the result itself; None if it is neither."""
    op = defining_op(moved_from(result))
    found = []
    for sums in [] if op is None or op.name != DOT else [Weighted(op, weight) for weight in range(2)]:
        products = _products_behind(sums.weights, among, made)
        if products and sums.column >= 0:
            found.append(_Behind(sums.weights, products, sums))
    if len(found) == 1:
        return found[0]
    products = _products_behind(result, among, made)
    return _Behind(result, products, None) if products else None


def _products_behind(
    value: ir.Value, among: Collection[ir.Operation] | None, made: Container[ir.Value] | None
) -> Mapping[ir.Operation, IndexingMap]:
    """Return the products that a value is computed from; none if it is computed from several elements of one."""
    products = products_behind(value, identity_map(shape_of(value)), made)
    if among is not None:
        products = {product: map_ for product, map_ in products.items() if product in among}
    known = {product: map_ for product, map_ in products.items() if map_ is not None}
    return known if len(known) == len(products) else {}


@dataclass(frozen=True)
class _Reached:
    """A value as the space has it: its ``indices``, and the ``maps`` to the results of products."""

    behind: _Behind
    indices: tuple[AffineExpr, ...]
    maps: Mapping[ir.Operation, IndexingMap]

    @classmethod
    def of(cls, behind: _Behind, first: ir.Operation) -> "_Reached | None":
        """Return a value in the space of the first product's result; None if that has other elements."""
        if first not in behind.products:
            return None
        shape = shape_of(first.results[0])
        indices = inverted(behind.products[first], shape_of(behind.value), shape)
        if indices is None:
            return None
        space = IndexingMap(ranges(shape), (), indices)
        return cls(behind, indices, {op: then(space, map_) for op, map_ in behind.products.items()})

    @property
    def sums(self) -> Weighted | None:
        """The sums whose weights the value is."""
        return self.behind.sums

    @cached_property
    def contracted(self) -> frozenset[int]:
        """The dimensions of the space along which rows are added up."""
        return self._dimensions(self.sums.contracted if self.sums else ())

    @cached_property
    def free(self) -> frozenset[int]:
        """Those that the rows do not have."""
        return self._dimensions(self.sums.free if self.sums else ())

    def _dimensions(self, numbers: Sequence[int]) -> frozenset[int]:
        return frozenset(found for number in numbers for found in self.indices[number].variables()[0])


def inverted(map_: IndexingMap, weights: Shape, shape: Shape) -> tuple[AffineExpr, ...] | None:
    """Return the indices of an array, given those of another one that ``map_`` leads to, which has the same elements.

    None unless each dimension of more than one element is one of the other array.
    """
    found: dict[int, int] = {}
    for number, each in enumerate(map_.results):
        positions = each.variables()[0]
        if not positions and shape[number] == 1:
            continue
        if len(positions) != 1 or each != dim(*positions) or weights[min(positions)] != shape[number]:
            return None
        found[min(positions)] = number
    if any(size > 1 and number not in found for number, size in enumerate(weights)):
        return None
    return tuple(dim(found[number]) if number in found else constant(0) for number in range(len(weights)))


def _space(first: ir.Operation, reached: Sequence[_Reached]) -> SumSpace | str:
    """Return how the indices of the first product's result are gone through."""
    shape = shape_of(first.results[0])
    sums = [each for each in reached if each.sums is not None]
    contracted, free = sums[0].contracted, sums[0].free
    if any(each.contracted != contracted for each in sums) or not contracted:
        return "expected sums along the same dimensions"
    for each in sums:
        free &= each.free
    stepped = longest(sorted(contracted), shape)
    for each in reached:
        for op, map_ in each.maps.items():
            used = _used(op, map_)
            if not (stepped in used[0]) ^ (stepped in used[1]):
                return "expected products of which one operand has the rows that are added up"
            free -= used[0] if stepped in used[0] else used[1]
    if not free:
        return "expected rows that share what is added up"
    resident = longest(sorted(free), shape)
    loops = tuple(sorted(contracted - {stepped}))
    others = [number for number in range(len(shape)) if number not in (resident, *contracted)]
    return SumSpace(shape, resident, stepped, loops, tuple(sorted(others, key=lambda each: (each in free, each))))


def _left(op: ir.Operation, map_: IndexingMap, space: SumSpace) -> int | None:
    """Return the operand of a product that all steps of a block share; None if there is none."""
    used = _used(op, map_)
    if any(len(then(map_, access.map).symbols) != 1 for access in accesses(op)):
        return None
    for left in range(2):
        if not used[left] & {space.stepped, *space.loops} and space.resident in used[left]:
            return left
    return None


def _used(op: ir.Operation, map_: IndexingMap) -> list[set[int]]:
    """Return the dimensions of the space that each operand of a product has."""
    return [
        {number for each in then(map_, access.map).results for number in each.variables()[0]} for access in accesses(op)
    ]
