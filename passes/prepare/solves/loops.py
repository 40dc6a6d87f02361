"""Factors and solutions of matrices of any size, as loops: one column after the other, all elements at once.

Matrices have one dimension before their rows, for a batch.
"""

from collections.abc import Sequence

from xgpu.hlo.stablehlo_builder import (
    Value,
    compared,
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
from xgpu.passes.prepare.solves.parts import (
    NUMBER,
    conjugate,
    divided,
    is_complex,
    like,
    numbers_of,
    part,
    real,
    real_type,
    with_element,
)
from xgpu.structure import element_of


def solution(matrices: Value, right: Value, lower: bool, turned: bool, unit: bool) -> Value:
    """Return ``x`` of ``a x = right`` for triangular matrices, or for their transposes if ``turned``.

    ``lower`` says which triangle counts, of matrices as they are given; ``unit`` that the diagonal counts as ones.
    """
    size, is_forward = shape_of(matrices)[1], lower != turned

    def step(turn: Value, values: Sequence[Value]) -> Sequence[Value]:
        (x,) = values
        k = turn if is_forward else hlo.subtract(splat_like(size - 1, turn), turn)
        row = part(x, (None, k, None))
        if not unit:
            row = hlo.divide(row, like(part(matrices, (None, k, k)), row))
        column = part(matrices, (None, k, None) if turned else (None, None, k))
        number = hlo.iota(tensor(shape_of(x), NUMBER), 1)
        here, solved = like(k, number), like(row, x)
        column = like(reshape(column, [shape_of(x)[0], size, 1]), x)
        rest = hlo.subtract(x, hlo.multiply(column, solved))
        rest = hlo.select(compared(number, here, "GT" if is_forward else "LT"), rest, x)
        return [hlo.select(compared(number, here, "EQ"), solved, rest)]

    return repeated(size, [right], step)[0]


def cholesky(matrices: Value) -> tuple[Value, Value]:
    """Return the lower factors beside upper triangles as they are, and the first minor that is not positive, or 0."""

    def step(k: Value, values: Sequence[Value]) -> Sequence[Value]:
        (a,) = values
        batch, size, _ = shape_of(a)
        diagonal = hlo.sqrt(real(part(a, (None, k, k))))
        column = part(a, (None, None, k))
        scaled = divided(column, like(diagonal, column))
        diagonal, others = with_element(diagonal, element_of(a)), conjugate(scaled)
        i, j = numbers_of(a)
        here = like(k, i)
        product = hlo.multiply(like(scaled, a), like(reshape(others, [batch, 1, size]), a))
        is_rest = hlo.and_(compared(j, here, "GT"), compared(i, j, "GE"))
        rest = hlo.select(is_rest, hlo.subtract(a, product), a)
        of_column = hlo.select(compared(i, here, "EQ"), like(diagonal, a), like(scaled, a))
        is_column = hlo.and_(compared(j, here, "EQ"), compared(i, here, "GE"))
        return [hlo.select(is_column, of_column, rest)]

    (factors,) = repeated(shape_of(matrices)[1], [matrices], step)
    is_positive = compared(real(factors), splat_like(0, real(factors)), "GT")
    return factors, _first_of_diagonal(hlo.not_(is_positive))


def lu(matrices: Value) -> tuple[Value, Value, Value]:
    """Return the factors in one matrix, the pivots' rows, counted from 1, and the first pivot that is zero, or 0."""
    batch, rows, columns = shape_of(matrices)
    count = min(rows, columns)

    def step(k: Value, values: Sequence[Value]) -> Sequence[Value]:
        a, pivots = values
        column = part(a, (None, None, k))
        p = _pivot(column, k)
        own, chosen = part(a, (None, k, None)), _row_at(a, p)
        i, j = numbers_of(a)
        here, pivot = like(k, i), like(p, i)
        at_own, at_pivot = compared(i, here, "EQ"), compared(i, pivot, "EQ")
        swapped = hlo.select(at_own, like(chosen, a), hlo.select(at_pivot, like(own, a), a))
        divisor, first = part(chosen, (None, None, k)), part(own, (None, None, k))
        entry = hlo.select(at_pivot, like(first, a), like(column, a))
        divisor = like(divisor, a)
        factor = hlo.select(compared(divisor, splat_like(0, a), "EQ"), entry, hlo.divide(entry, divisor))
        rest = hlo.subtract(swapped, hlo.multiply(factor, like(chosen, a)))
        rest = hlo.select(compared(j, here, "GT"), rest, swapped)
        rest = hlo.select(compared(j, here, "EQ"), factor, rest)
        number = hlo.iota(tensor([batch, count], NUMBER), 1)
        row = like(hlo.add(reshape(p, [batch, 1]), splat(1, tensor([batch, 1], NUMBER))), number)
        pivots = hlo.select(compared(number, like(k, number), "EQ"), row, pivots)
        return [hlo.select(compared(i, here, "GT"), rest, swapped), pivots]

    factors, pivots = repeated(count, [matrices, splat(0, tensor([batch, count], NUMBER))], step)
    return factors, pivots, _first_of_diagonal(compared(factors, splat_like(0, factors), "EQ"))


def permutation(pivots: Value, size: int) -> Value:
    """Return the order of ``size`` rows after exchanging each with its pivot's, one after the other, from 0 on."""
    batch, count = shape_of(pivots)

    def step(k: Value, values: Sequence[Value]) -> Sequence[Value]:
        (order,) = values
        p, own = part(pivots, (None, k)), part(order, (None, k))
        number = hlo.iota(tensor([batch, size], NUMBER), 1)
        place = hlo.add(
            hlo.multiply(hlo.iota(tensor([batch, 1], NUMBER), 0), splat(size, tensor([batch, 1], NUMBER))), p
        )
        other = gathered(reshape(order, [batch * size]), place)
        moved = hlo.select(compared(number, like(p, number), "EQ"), like(own, number), order)
        return [hlo.select(compared(number, like(k, number), "EQ"), like(other, number), moved)]

    return repeated(count, [hlo.iota(tensor([batch, size], NUMBER), 1)], step)[0]


def _pivot(column: Value, k: Value) -> Value:
    """Return the row of the first largest element of a column from row ``k`` on; ``k`` where none is a number."""
    batch, rows, _ = shape = shape_of(column)
    number, size = hlo.iota(tensor(shape, NUMBER), 1), _size(column)
    sizes = hlo.select(compared(number, like(k, number), "GE"), size, splat_like(-1, size))
    largest = reshape(reduced(sizes, splat(-1, tensor([], real_type(column))), [1, 2], hlo.maximum), [batch, 1, 1])
    none = splat_like(rows, number)
    found = hlo.select(compared(sizes, like(largest, sizes), "EQ"), number, none)
    first = reshape(reduced(found, splat(rows, tensor([], NUMBER)), [1, 2], hlo.minimum), [batch, 1, 1])
    return hlo.select(compared(first, splat_like(rows, first), "EQ"), like(k, first), first)


def _size(column: Value) -> Value:
    """Return how large LAPACK takes elements for: of complex ones the sum of the absolute values of their parts."""
    if not is_complex(column):
        return hlo.abs(column)
    return hlo.add(hlo.abs(hlo.real(column)), hlo.abs(hlo.imag(column)))


def _row_at(a: Value, row: Value) -> Value:
    """Return for each matrix the row of a number."""
    batch, rows, columns = shape_of(a)
    numbers = tensor([batch, 1, columns], NUMBER)
    first = hlo.add(hlo.multiply(hlo.iota(numbers, 0), splat(rows, numbers)), like(row, splat(0, numbers)))
    place = hlo.add(hlo.multiply(first, splat(columns, numbers)), hlo.iota(numbers, 2))
    return gathered(reshape(a, [batch * rows * columns]), place)


def _first_of_diagonal(flags: Value) -> Value:
    """Return the number, from 1, of the first element of the diagonal whose flag is true, or 0."""
    shape = batch, *_ = shape_of(flags)
    i, j = numbers_of(flags)
    none = splat((1 << 31) - 1, tensor(shape, NUMBER))
    numbers = hlo.select(hlo.and_(flags, compared(i, j, "EQ")), hlo.add(i, splat_like(1, i)), none)
    first = reduced(numbers, splat((1 << 31) - 1, tensor([], NUMBER)), [1, 2], hlo.minimum)
    return hlo.select(compared(first, splat((1 << 31) - 1, tensor([batch], NUMBER)), "EQ"), splat_like(0, first), first)
