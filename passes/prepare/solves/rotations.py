"""Eigenvalues of symmetric matrices, and singular values, by Jacobi's rotations.

Matrices have one dimension before their rows, for a batch. Half as many rotations as there are columns are done at
once, each of a pair of columns of its own. Then columns change places as the players of a tournament do, in which each
meets each other: so a sweep over all pairs is a loop of one iteration less than there are columns, and after it all
columns are where they were. (Source: Brent and Luk, 1985.) The singular values are those of a matrix whose columns are
rotated until they are orthogonal (Hestenes, 1958). Of complex matrices the second column of each pair is first
multiplied by a number of length one, such that what makes both not orthogonal is real; the rotations are the same then.
"""

import math
from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.hlo.stablehlo_builder import (
    Value,
    broadcast,
    compared,
    convert,
    gathered,
    hlo,
    reduced,
    repeated,
    reshape,
    shape_of,
    splat,
    splat_like,
    tensor,
)
from xgpu.passes.prepare.solves import reflections
from xgpu.passes.prepare.solves.parts import (
    NUMBER,
    adjoint,
    conjugate,
    direction_of,
    divided,
    is_complex,
    largest_part,
    numbers_of,
    real,
    real_type,
    scaled,
    squared,
    with_element,
)
from xgpu.structure import element_of

_UNITS = {"f32": 2.0**-26, "f64": 2.0**-55}
"""A quarter of a unit in the last place of one, by type."""
_SWEEPS = {"f32": 4, "f64": 6}
"""Sweeps beyond the logarithm of the number of columns, after which none changed a result in tests."""


def eigen(matrices: Value, lower: bool) -> tuple[Value, Value]:
    """Return the eigenvalues, the smallest first, and in columns the eigenvectors. One triangle counts."""
    size = shape_of(matrices)[1]
    i, j = numbers_of(matrices)
    own = compared(i, j, "GE" if lower else "LE")
    whole = hlo.select(own, matrices, adjoint(matrices))
    if is_complex(whole):
        whole = hlo.select(compared(i, j, "EQ"), with_element(real(whole), element_of(whole)), whole)
    whole = _grown(whole)

    def step(_: Value, values: Sequence[Value]) -> Sequence[Value]:
        a, vectors = values
        halves = shape_of(a)[1] // 2
        first, second, between = (_diagonal(a, *place) for place in ((0, 0), (halves, halves), (0, halves)))
        a = _turned(_turned(a, between, 2), between, 1)
        vectors = _turned(vectors, between, 2)
        cosines, sines = _rotation(real(first), real(second), _length(between))
        a = _rotated(_rotated(a, cosines, sines, 2), cosines, sines, 1)
        return [_moved(_moved(a, 1), 2), _moved(_rotated(vectors, cosines, sines, 2), 2)]

    a, vectors = _swept(step, [whole, _identity(whole)], whole)
    values = real(_diagonal(_cut(a, size, size), 0, 0, size))
    order = _order(values, "LT")
    return _taken(values, order), _columns(_cut(vectors, size, size), order)


def singular(matrices: Value, left: int, right: int) -> tuple[Value, Value, Value]:
    """Return the singular values, the largest first, and the first columns of both matrices of singular vectors.

    So many of each: as many as there are singular values, or as there are rows and columns.
    """
    batch, rows, columns = shape_of(matrices)
    if rows < columns:
        values, of_columns, of_rows = singular(adjoint(matrices), right, left)
        return values, of_rows, of_columns
    scale = _largest(matrices)
    grown = _grown_along(divided(matrices, broadcast(scale, [batch, rows, columns], [0])), 2)
    identity = _identity(splat(0, tensor([batch, *[shape_of(grown)[2]] * 2], element_of(matrices))))

    def step(_: Value, values: Sequence[Value]) -> Sequence[Value]:
        a, vectors = values
        one, other = _halves(a, 2)
        first, second, between = (_sums(each) for each in (*map(squared, (one, other)), _products(one, other)))
        cosines, sines = _rotation(first, second, _length(between))
        return [_moved(_rotated(_turned(each, between, 2), cosines, sines, 2), 2) for each in (a, vectors)]

    a, vectors = _swept(step, [grown, identity], grown)
    a, vectors = _cut(a, rows, columns), _cut(vectors, columns, columns)
    values = hlo.sqrt(_sums(squared(a)))
    order = _order(values, "GT")
    packed, taus = reflections.factors(_columns(a, order))
    of_rows = reflections.columns_of_product(packed, taus, left)
    signs = _signs(real(_diagonal(packed, 0, 0, columns)), left)
    of_rows = scaled(of_rows, broadcast(signs, [batch, rows, left], [0, 2]))
    values = hlo.multiply(_taken(values, order), broadcast(scale, [batch, columns], [0]))
    return values, of_rows, _cut(_columns(vectors, order), columns, right)


type _Step = Callable[[Value, Sequence[Value]], Sequence[Value]]


def _swept(step: _Step, starts: Sequence[Value], grown: Value) -> Sequence[Value]:
    """Return values after as many sweeps as it takes, each a rotation of every pair of columns."""
    columns = shape_of(grown)[2]
    sweeps = _SWEEPS[str(real_type(grown))] + math.ceil(math.log2(columns))
    return repeated(sweeps * (columns - 1), starts, step)


def _rotation(first: Value, second: Value, between: Value) -> tuple[Value, Value]:
    """Return the cosine and the sine of the smaller angle that makes ``between`` zero: of a symmetric matrix of two."""
    zero, one, two = (splat_like(number, first) for number in (0, 1, 2))
    # What is that small beside both changes neither, and turning on and on would only add errors.
    size = hlo.multiply(hlo.sqrt(hlo.abs(first)), hlo.sqrt(hlo.abs(second)))
    limit = hlo.multiply(splat_like(_UNITS[str(element_of(first))], first), size)
    none = compared(hlo.abs(between), limit, "LE")
    divisor = hlo.select(none, one, hlo.multiply(two, between))
    zeta = hlo.divide(hlo.subtract(second, first), divisor)
    root = hlo.sqrt(hlo.add(hlo.multiply(zeta, zeta), one))
    tangent = hlo.divide(one, hlo.add(hlo.abs(zeta), root))
    tangent = hlo.select(compared(zeta, zero, "LT"), hlo.negate(tangent), tangent)
    tangent = hlo.select(none, zero, tangent)
    cosine = hlo.divide(one, hlo.sqrt(hlo.add(hlo.multiply(tangent, tangent), one)))
    return cosine, hlo.multiply(tangent, cosine)


def _rotated(a: Value, cosines: Value, sines: Value, axis: int) -> Value:
    """Return the rows or columns of ``a`` rotated: each of the first half with that of the second half.

    It is written as a change of both, so that small angles make small errors. (Source: Rutishauser, 1966.)
    """
    one, other = _halves(a, axis)
    tangents = hlo.divide(sines, hlo.add(cosines, splat_like(1, cosines)))
    s, t = (broadcast(each, shape_of(one), [0, axis]) for each in (sines, tangents))
    first = hlo.subtract(one, scaled(hlo.add(other, scaled(one, t)), s))
    second = hlo.add(other, scaled(hlo.subtract(one, scaled(other, t)), s))
    return hlo.concatenate([first, second], axis)


def _products(one: Value, other: Value) -> Value:
    return hlo.multiply(conjugate(one), other)


def _length(between: Value) -> Value:
    """Return what a pair is apart from orthogonal once `_turned`: the real number itself, or the absolute value."""
    return hlo.abs(between) if is_complex(between) else between


def _turned(a: Value, between: Value, axis: int) -> Value:
    """Return complex rows or columns, the second of each pair turned so that ``between`` becomes its absolute value."""
    if not is_complex(a):
        return a
    one, other = _halves(a, axis)
    direction = direction_of(between)
    factor = broadcast(direction if axis == 1 else conjugate(direction), shape_of(other), [0, axis])
    return hlo.concatenate([one, hlo.multiply(other, factor)], axis)


def _moved(a: Value, axis: int) -> Value:
    """Return the rows or columns in the next order of the tournament; the first one stays."""
    size = shape_of(a)[axis]
    half = size // 2
    if half == 1:
        return a
    parts = [(0, 1), (half, half + 1), (1, half - 1), (half + 1, size), (half - 1, half)]
    return hlo.concatenate([_slice(a, axis, *each) for each in parts if each[0] < each[1]], axis)


def _halves(a: Value, axis: int) -> tuple[Value, Value]:
    half = shape_of(a)[axis] // 2
    return _slice(a, axis, 0, half), _slice(a, axis, half, 2 * half)


def _slice(a: Value, axis: int, first: int, end: int) -> Value:
    shape = shape_of(a)
    starts = [first if number == axis else 0 for number in range(len(shape))]
    limits = [end if number == axis else size for number, size in enumerate(shape)]
    return hlo.slice(a, starts, limits, [1] * len(shape))


def _cut(a: Value, rows: int, columns: int) -> Value:
    return _slice(_slice(a, 1, 0, rows), 2, 0, columns)


def _grown(a: Value) -> Value:
    """Return square matrices with an even number of rows: a row and a column of zeros are added if need be."""
    return _grown_along(_grown_along(a, 1), 2)


def _grown_along(a: Value, axis: int) -> Value:
    shape = shape_of(a)
    if shape[axis] % 2 == 0:
        return a
    shape[axis] = 1
    return hlo.concatenate([a, splat(0, tensor(shape, element_of(a)))], axis)


def _identity(like: Value) -> Value:
    i, j = numbers_of(like)
    return with_element(compared(i, j, "EQ"), element_of(like))


def _diagonal(a: Value, row: int, column: int, count: int = 0) -> Value:
    """Return elements on a diagonal that begins at a row and a column: half as many as there are rows, or so many."""
    batch, rows, columns = shape_of(a)
    first, step = row * columns + column, columns + 1
    last = first + ((count or rows // 2) - 1) * step
    return hlo.slice(reshape(a, [batch, rows * columns]), [0, first], [batch, last + 1], [1, step])


def _sums(a: Value) -> Value:
    """Return the sum of each column."""
    return reduced(a, splat(0, tensor([], element_of(a))), [1], hlo.add)


def _largest(a: Value) -> Value:
    """Return the absolute value of the largest element of each matrix, or largest part, 1 where all are zeros."""
    found = reduced(largest_part(a), splat(0, tensor([], real_type(a))), [1, 2], hlo.maximum)
    return hlo.select(compared(found, splat_like(0, found), "EQ"), splat_like(1, found), found)


def _signs(values: Value, count: int) -> Value:
    """Return -1 for the negative ones of some values, 1 for the others and for as many as there are beyond them."""
    one = splat_like(1, values)
    signs = hlo.select(compared(values, splat_like(0, values), "LT"), hlo.negate(one), one)
    batch, size = shape_of(values)
    if count <= size:
        return _slice(signs, 1, 0, count)
    return hlo.concatenate([signs, splat(1, tensor([batch, count - size], element_of(values)))], 1)


def _order(values: Value, direction: str) -> Value:
    """Return for each place the number of the value that belongs there; equal values stay in their order."""
    batch, size = shape_of(values)
    own, other = (broadcast(values, [batch, size, size], [0, axis]) for axis in (1, 2))
    i, j = numbers_of(own)
    is_before = hlo.or_(compared(other, own, direction), hlo.and_(compared(other, own, "EQ"), compared(j, i, "LT")))
    zero = splat(0, tensor([], NUMBER))
    places = reduced(convert(is_before, ir.Type.parse(NUMBER)), zero, [2], hlo.add)
    # The first value of each place: what is no number has none, or one of several.
    last = splat(size - 1, ir.RankedTensorType(i.type))
    found = hlo.select(compared(broadcast(places, [batch, size, size], [0, 2]), i, "EQ"), j, last)
    first = reduced(found, splat(size - 1, tensor([], NUMBER)), [2], hlo.minimum)
    # They are in this range anyway; so it is seen that what they say the place of is in bounds.
    return hlo.clamp(splat_like(0, first), first, splat_like(size - 1, first))


def _taken(values: Value, order: Value) -> Value:
    batch, size = shape_of(values)
    rows = hlo.iota(tensor([batch, size], NUMBER), 0)
    places = hlo.add(hlo.multiply(rows, splat_like(size, rows)), order)
    return gathered(reshape(values, [batch * size]), places)


def _columns(a: Value, order: Value) -> Value:
    """Return the columns of matrices in an order."""
    batch, rows, columns = shape_of(a)
    numbers = tensor([batch, rows, columns], NUMBER)
    first = hlo.add(hlo.multiply(hlo.iota(numbers, 0), splat(rows, numbers)), hlo.iota(numbers, 1))
    places = hlo.add(hlo.multiply(first, splat(columns, numbers)), broadcast(order, [batch, rows, columns], [0, 2]))
    return gathered(reshape(a, [batch * rows * columns]), places)
