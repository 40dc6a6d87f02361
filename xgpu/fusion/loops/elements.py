"""Elements of arrays with short dimensions, computed one by one: each is an array of the long dimensions that are left.

What an element reads is what its operation's indexing maps say, with constants for the indices of short dimensions.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from xgpu import ir
from xgpu.analysis.constants.counters import unchanging
from xgpu.analysis.in_place import UPDATE_SLICE
from xgpu.fusion.fallback import BARRIER, PRODUCT
from xgpu.fusion.loops.sums_of_products import type_of_sums
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.scan_op import SCAN, combine_elements, is_elementwise
from xgpu.hlo.stablehlo_builder import broadcast, convert, hlo, reshape, splat, splat_like, tensor
from xgpu.indexing.access import Access, integer, shape_of
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.scatter_maps import ScatterMaps, scatter_maps
from xgpu.records import dataclass
from xgpu.structure import attributes_of, element_of, is_argument, made, owning_op, producer

Index = tuple[int | None, ...]
"""A number for each short dimension of an array, None for the others."""
_Key = tuple[ir.Value, Index]


class NotSplit(Exception):
    """An element cannot be computed of others of its row."""


_Recipe = tuple[list[_Key], Callable[[list[ir.Value]], ir.Value]]
"""The operations that an element is made of."""
_DYNAMIC_SLICE, _REDUCE = "stablehlo.dynamic_slice", "stablehlo.reduce"
SCATTER = "stablehlo.scatter"
_ELEMENTWISE = frozenset(name for name, each in OPERATIONS.items() if each.kind == "elementwise")
_MOVING = frozenset(
    f"stablehlo.{name}" for name in "broadcast_in_dim concatenate pad reshape reverse slice transpose".split()
)
"""Operations that take each element from an operand, at a place that does not depend on others."""


@dataclass(frozen=True)
class _Read:
    """An element of ``value`` that another one reads; its dimensions are those of the reader that ``places`` has."""

    value: ir.Value
    operand: int
    index: Index
    places: tuple[int, ...]

    @property
    def key(self) -> _Key:
        return self.value, self.index


class Elements:
    """Makes elements at the current insertion point, each once: those of ``known`` are there.

    Values from around ``loop`` are read there; others are computed again. Dimensions of up to ``longest`` elements are
    short.
    """

    def __init__(self, loop: ir.Operation, longest: int, known: Mapping[_Key, ir.Value]):
        self._loop, self._longest = loop, longest
        self._known = dict(known)
        self._recipes: dict[_Key, Callable[[list[ir.Value]], ir.Value]] = {}

    def of(self, value: ir.Value, index: Index) -> ir.Value:
        """Return an element of an array; raises `NotSplit` if it needs one of another row, or what is no kernel's."""
        return made((value, index), self._known, self._needs, lambda key, parts: self._recipes.pop(key)(parts))

    def _needs(self, key: _Key) -> list[_Key]:
        """Return what an element is made of, and keep how."""
        needs, self._recipes[key] = self._recipe(*key)
        return needs

    def _recipe(self, value: ir.Value, index: Index) -> _Recipe:
        around = unchanging(value, self._loop)
        if is_argument(around) and owning_op(around) == self._loop:
            raise NotSplit
        if not self._is_inside(around):
            return [], lambda _: _part(around, index)
        op = producer(around)
        if op.name == BARRIER:
            return [(op.operands[ir.OpResult(around).result_number], index)], _first
        if op.name == _DYNAMIC_SLICE:
            return self._slice(op, index)
        if op.name == "stablehlo.iota":
            return [], lambda _: _iota(op, index)
        if op.name == "stablehlo.constant":
            return [], lambda _: _constant(op, index)
        if op.name in (PRODUCT, _REDUCE):
            return self._sum(op, index, ir.OpResult(around).result_number)
        if op.name == UPDATE_SLICE:
            return self._updated(op, index)
        if op.name == "stablehlo.gather":
            return self._chosen(op, index)
        if op.name == SCATTER:
            return self._scattered(op, index)
        if op.name == SCAN:
            return _scanned(op, index, ir.OpResult(around).result_number)
        if op.name in _MOVING:
            return self._moved(op, index)
        if op.name in _ELEMENTWISE and not len(op.regions):
            return self._computed(op, index)
        raise NotSplit

    def _is_inside(self, value: ir.Value) -> bool:
        return not is_argument(value) and producer(value).parent == self._loop

    def _slice(self, op: ir.Operation, index: Index) -> _Recipe:
        """An element of a slice of an array that the loop does not change: a slice of its own."""
        array, *starts = op.operands
        around = unchanging(array, self._loop)
        whole, part = shape_of(array), shape_of(op.results[0])
        dynamic = [i for i, size in enumerate(part) if size != whole[i]]
        if any(index[i] is not None and part[i] > 1 for i in dynamic):
            raise NotSplit
        if self._is_inside(around) or (is_argument(around) and owning_op(around) == self._loop):
            return self._chosen(op, index)

        def make(parts: list[ir.Value]) -> ir.Value:
            given = dict(zip(dynamic, parts, strict=True))
            type_ = ir.RankedTensorType(starts[0].type) if starts else tensor([], "i32")
            places = [given[i] if i in given else splat(number or 0, type_) for i, number in enumerate(index)]
            sizes = [size if number is None else 1 for size, number in zip(part, index, strict=True)]
            return reshape(hlo.dynamic_slice(around, places, sizes), _left(op.results[0], index))

        return [(starts[i], ()) for i in dynamic], make

    def _chosen(self, op: ir.Operation, index: Index) -> _Recipe:
        """An element at a place of run time of an array that changes: one of all that there are."""
        *components, access = accesses(op)
        indices = [self._read(op, components[each.access], index) for each in access.runtime]
        moving = [(read, each.clamp.upper) for read, each in zip(indices, access.runtime, strict=True) if read]
        starts = [(read, bound) for read, bound in moving if bound]
        if any(bound >= self._longest for _, bound in starts):
            raise NotSplit
        places = list(itertools.product(*(range(bound + 1) for _, bound in starts)))
        reads = [self._read_at(op, access, index, _spread(place, [bound for _, bound in moving])) for place in places]

        def make(parts: list[ir.Value]) -> ir.Value:
            given = [_placed(part, op, index, read) for part, (read, _) in zip(parts, starts, strict=False)]
            choices = [_placed(part, op, index, read) for part, read in zip(parts[len(starts) :], reads, strict=True)]
            chosen = choices[0]
            for place, choice in zip(places[1:], choices[1:], strict=True):
                numbers = [_clamped(start, bound) for start, (_, bound) in zip(given, starts, strict=True)]
                chosen = _where(numbers, place, choice, chosen)
            return chosen

        return [read.key for read, _ in starts] + [read.key for read in reads], make

    def _scattered(self, op: ir.Operation, index: Index) -> _Recipe:
        """An element of an array that is updated at places of run time: combined with each update that is there."""
        maps, function = scatter_maps(op), op.regions[0].blocks[0]
        if len(op.results) != 1 or not is_elementwise(function):
            raise NotSplit
        short = [range(size) if size <= self._longest else (None,) for size in maps.update_shape]
        found = [each for at in itertools.product(*short) if (each := self._update_at(op, maps, index, at)) is not None]

        def make(parts: list[ir.Value]) -> ir.Value:
            values = iter(parts)
            total = next(values)
            for update, conditions in found:
                new = _placed(next(values), op, index, update)
                given = [_placed(next(values), op, index, read) for read, _ in conditions]
                (combined,) = combine_elements(function, [total, new])
                total = _where(given, [number for _, number in conditions], combined, total)
            return total

        needs = [each for update, conditions in found for each in (update.key, *(read.key for read, _ in conditions))]
        return [(op.operands[0], index), *needs], make

    def _update_at(
        self, op: ir.Operation, maps: ScatterMaps, index: Index, at: Index
    ) -> tuple[_Read, list[tuple[_Read, int]]] | None:
        """Return the update at an index, and where its window must begin to be at an element; None if it cannot."""
        rank, components = len(at), range(len(maps.components))
        own = [dim(i) if number is None else constant(number) for i, number in enumerate(at)]
        along: dict[int, int] = {}
        begins: dict[int, int] = {}
        for place, (expr, number) in enumerate(zip(maps.operand.results, index, strict=True)):
            moves = [each for each in components if rank + each in expr.variables()[0]]
            left = expr.substitute([*own, *(constant(0) for _ in components)])
            if number is None:
                sources = [i for i, each in enumerate(at) if each is None and left == dim(i)]
                if len(sources) != 1 or maps.update_shape[sources[0]] != maps.operand_shape[place]:
                    raise NotSplit
                along[sources[0]] = place
            elif not left.is_constant:
                raise NotSplit
            missing = 0 if number is None else number - left.constant
            if not moves and missing:
                return None
            begins |= dict.fromkeys(moves, missing)
        if len(along) < at.count(None):
            raise NotSplit
        if any(not 0 <= begins[each] <= maps.bounds[each] for each in components):
            return None
        update = self._read_by(op, 2, own, at, along)
        return update, [
            (self._read_by(op, 1, [expr.substitute(own) for expr in maps.components[each].results], at, along), number)
            for each, number in begins.items()
        ]

    def _read_by(
        self, op: ir.Operation, operand: int, results: Sequence[AffineExpr], at: Index, along: Mapping[int, int]
    ) -> _Read:
        """Return an element that an update reads, whose dimensions lie ``along`` others of the result."""
        value = op.operands[operand]
        found = [self._place(*each, at) for each in zip(results, shape_of(value), strict=True)]
        places = tuple(along[place] for _, place in found if place is not None)
        return _Read(value, operand, tuple(number for number, _ in found), places)

    def _updated(self, op: ir.Operation, index: Index) -> _Recipe:
        """An element of an array that is updated at a place: that of the update, if it is there."""
        array, update, *starts = op.operands
        whole, part = shape_of(array), shape_of(update)
        cut = [i for i, size in enumerate(part) if size != whole[i]]
        if any(index[i] is None or part[i] > 1 for i in cut):
            raise NotSplit
        own = tuple(0 if i in cut else number for i, number in enumerate(index))

        def make(parts: list[ir.Value]) -> ir.Value:
            old, new, *given = parts
            starts = [_clamped(start, whole[i] - 1) for start, i in zip(given, cut, strict=True)]
            return _where(starts, [index[i] or 0 for i in cut], new, old)

        return [(array, index), (update, own), *((starts[i], ()) for i in cut)], make

    def _moved(self, op: ir.Operation, index: Index) -> _Recipe:
        """The first element whose constraints hold."""
        for access in accesses(op):
            read = self._read(op, access, index)
            if read is not None:
                return [read.key], lambda parts, read=read: _placed(parts[0], op, index, read)
        raise NotSplit

    def _computed(self, op: ir.Operation, index: Index) -> _Recipe:
        reads = self._reads(op, index)
        if op.name == "stablehlo.bitcast_convert" and shape_of(op.operands[0]) != shape_of(op.results[0]):
            raise NotSplit

        def make(parts: list[ir.Value]) -> ir.Value:
            operands = [_placed(part, op, index, read) for part, read in zip(parts, reads, strict=True)]
            type_ = tensor(_left(op.results[0], index), element_of(op.results[0]))
            return ir.Operation.create(op.name, [type_], operands, attributes_of(op)).results[0]

        return [read.key for read in reads], make

    def _sum(self, op: ir.Operation, index: Index, number: int) -> _Recipe:
        """A sum of products, or a reduction: one term after the other."""
        steps = [interval.size for interval in accesses(op)[0].map.symbols]
        if not all(0 < size <= self._longest for size in steps):
            raise NotSplit
        terms = [self._reads(op, index, symbols) for symbols in itertools.product(*map(range, steps))]
        count = len(op.results)
        starts = terms[0][count:] if op.name == _REDUCE else []
        groups = [starts, *(term[:count] for term in terms)] if op.name == _REDUCE else terms
        reads = [read for group in groups for read in group]

        def make(parts: list[ir.Value]) -> ir.Value:
            values = iter([_placed(part, op, index, read) for part, read in zip(parts, reads, strict=True)])
            grouped = [[next(values) for _ in group] for group in groups]
            return _combined(op, grouped)[number] if op.name == _REDUCE else _sum_of_products(op, grouped)

        return [read.key for read in reads], make

    def _reads(self, op: ir.Operation, index: Index, symbols: Sequence[int] = ()) -> list[_Read]:
        found = [self._read(op, access, index, symbols) for access in accesses(op)]
        if None in found:
            raise NotSplit
        return [read for read in found if read is not None]

    def _read(self, op: ir.Operation, access: Access, index: Index, symbols: Sequence[int] = ()) -> _Read | None:
        """Return the element that an access reads for another; None if it reads none."""
        if access.runtime:
            raise NotSplit
        at = [dim(i) if number is None else constant(number) for i, number in enumerate(index)]
        steps = [constant(number) for number in symbols]
        for expr, interval in access.map.constraints:
            place = expr.substitute(at, steps).interval(access.map.dims, access.map.symbols)
            if place.intersect(interval).is_empty:
                return None
            if not interval.contains_interval(place):
                raise NotSplit
        return self._read_at(op, access, index, (), symbols)

    def _read_at(
        self, op: ir.Operation, access: Access, index: Index, starts: Sequence[int], symbols: Sequence[int] = ()
    ) -> _Read:
        """Return the element that an access reads for another if its indices of run time are ``starts``."""
        at = [dim(i) if number is None else constant(number) for i, number in enumerate((*index, *starts))]
        steps = [constant(number) for number in symbols]
        value = op.operands[access.operand]
        results = [expr.substitute(at, steps) for expr in access.map.results]
        found = [self._place(*each, index) for each in zip(results, shape_of(value), strict=True)]
        own = tuple(number for number, _ in found)
        places = tuple(place for _, place in found if place is not None)
        if len(set(places)) < len(places):
            raise NotSplit
        return _Read(value, access.operand, own, places)

    def _place(self, expr: AffineExpr, size: int, index: Index) -> tuple[int | None, int | None]:
        """Return the number that an index of an operand is, or else the dimension of the reader that it is."""
        if expr.is_constant and size <= self._longest:
            return expr.constant, None
        for place, number in enumerate(index):
            if number is None and size > self._longest and expr == dim(place):
                return None, place
        raise NotSplit


def _spread(place: Sequence[int], bounds: Sequence[int]) -> list[int]:
    """Return indices of run time: those of a place, and 0 for those that can be nothing else."""
    numbers = iter(place)
    return [next(numbers) if bound else 0 for bound in bounds]


def _clamped(index: ir.Value, bound: int) -> ir.Value:
    """Return an index, or the end that it lies past."""
    return hlo.clamp(splat_like(0, index), index, splat_like(bound, index))


def _where(indices: Sequence[ir.Value], place: Sequence[int], value: ir.Value, other: ir.Value) -> ir.Value:
    """Return ``value`` if indices are those of a place, else another."""
    for index, number in zip(indices, place, strict=True):
        is_here = hlo.compare(index, splat_like(number, index), hlo.ComparisonDirectionAttr.get("EQ"))
        value = hlo.select(is_here if shape_of(index) else broadcast(is_here, shape_of(value)), value, other)
    return value


def _scanned(op: ir.Operation, index: Index, number: int) -> _Recipe:
    """An element of a scan along a short dimension: that before it, combined with one more."""
    along, is_reverse = integer(op, "dimension"), bool(ir.BoolAttr(op.attributes["reverse"]).value)
    at, (function,) = index[along], op.regions[0].blocks
    if at is None or not is_elementwise(function):
        raise NotSplit
    if at == (shape_of(op.results[0])[along] - 1 if is_reverse else 0):
        return [(op.operands[number], index)], _first
    before = tuple(at + (1 if is_reverse else -1) if i == along else each for i, each in enumerate(index))
    needs: list[_Key] = [*((result, before) for result in op.results), *((value, index) for value in op.operands)]
    return needs, lambda parts: combine_elements(function, parts)[number]


def _first(parts: list[ir.Value]) -> ir.Value:
    return parts[0]


def _left(value: ir.Value, index: Index) -> list[int]:
    """Return the sizes of an array's long dimensions."""
    return [size for size, number in zip(shape_of(value), index, strict=True) if number is None]


def _part(array: ir.Value, index: Index) -> ir.Value:
    """Return an element of an array that is there."""
    starts = [number or 0 for number in index]
    ends = [size if number is None else number + 1 for size, number in zip(shape_of(array), index, strict=True)]
    if all(number is None for number in index):
        return array
    return reshape(hlo.slice(array, starts, ends, [1] * len(starts)), _left(array, index))


def _placed(part: ir.Value, op: ir.Operation, index: Index, read: _Read) -> ir.Value:
    """Return an element that another one reads, with the dimensions of that."""
    long = [i for i, number in enumerate(index) if number is None]
    if list(read.places) == long:
        return part
    order = sorted(read.places)
    if order != list(read.places):
        part = hlo.transpose(part, [read.places.index(place) for place in order])
    return broadcast(part, _left(op.results[0], index), [long.index(place) for place in order])


def _iota(op: ir.Operation, index: Index) -> ir.Value:
    result, along = op.results[0], integer(op, "iota_dimension")
    type_ = tensor(_left(result, index), element_of(result))
    number = index[along]
    if number is not None:
        return splat(number, type_)
    return hlo.iota(type_, [i for i, each in enumerate(index) if each is None].index(along))


def _constant(op: ir.Operation, index: Index) -> ir.Value:
    result = op.results[0]
    number = splat_of(op)
    if number is not None:
        type_ = tensor(_left(result, index), element_of(result))
        return hlo.constant(ir.DenseElementsAttr.get_splat(type_, number))
    return _part(op.clone().results[0], index)


def _combined(op: ir.Operation, groups: Sequence[list[ir.Value]]) -> list[ir.Value]:
    """Return initial values and terms, as the function of a reduction combines them."""
    (function,) = op.regions[0].blocks
    if not is_elementwise(function):
        raise NotSplit
    return reduce(lambda total, term: combine_elements(function, [*total, *term]), groups)


def _sum_of_products(op: ir.Operation, pairs: Sequence[list[ir.Value]]) -> ir.Value:
    element = type_of_sums(op)
    products = [hlo.multiply(convert(left, element), convert(right, element)) for left, right in pairs]
    return convert(reduce(hlo.add, products), element_of(op.results[0]))
