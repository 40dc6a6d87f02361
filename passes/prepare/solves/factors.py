"""The factors of a small matrix: LU with partial pivoting and Cholesky's, as LAPACK defines them."""

from xgpu.hlo.stablehlo_builder import Value, compared, hlo, reshape, shape_of, splat, splat_like, tensor
from xgpu.passes.prepare.solves.elements import (
    Matrix,
    elements_of,
    matrices_of,
    part_of,
    stacked,
    swapped,
)


def lu_factors(matrices: Value) -> list[Value]:
    """Return the factors in one matrix, the pivots' rows, counted from 1, and the first pivot that is zero, or 0.

    The pivot of a column is its first largest element from the diagonal on.
    """
    rows = elements_of(matrices)
    batch = shape_of(rows[0][0])
    pivots = []
    number = tensor(batch, "i32")
    first_zero = splat(0, number)
    for k in range(len(rows)):
        pivot, below = _pivot(rows, k), range(k + 1, len(rows))
        places = [compared(pivot, splat(i, number), "EQ") for i in below]
        columns = [swapped([row[j] for row in rows], k, below, places) for j in range(len(rows))]
        rows = [[column[i] for column in columns] for i in range(len(rows))]
        is_zero = compared(rows[k][k], splat_like(0, rows[k][k]), "EQ")
        found = hlo.and_(is_zero, compared(first_zero, splat(0, number), "EQ"))
        first_zero = hlo.select(found, splat(k + 1, number), first_zero)
        _eliminate(rows, k, is_zero)
        pivots.append(hlo.add(pivot, splat(1, number)))
    return [matrices_of(rows), stacked(pivots, len(batch)), first_zero]


def _pivot(rows: Matrix, k: int) -> Value:
    """Return the row of the first largest element of column ``k`` from row ``k`` on."""
    number = tensor(shape_of(rows[k][k]), "i32")
    largest, at = hlo.abs(rows[k][k]), splat(k, number)
    for i in range(k + 1, len(rows)):
        size = hlo.abs(rows[i][k])
        is_larger = compared(size, largest, "GT")
        largest, at = hlo.select(is_larger, size, largest), hlo.select(is_larger, splat(i, number), at)
    return at


def _eliminate(rows: Matrix, k: int, is_zero: Value) -> None:
    """Subtract row ``k`` from those below it; a column whose pivot is zero has nothing to eliminate."""
    for i in range(k + 1, len(rows)):
        factor = hlo.select(is_zero, rows[i][k], hlo.divide(rows[i][k], rows[k][k]))
        changed = [
            hlo.subtract(mine, hlo.multiply(factor, theirs))
            for mine, theirs in zip(rows[i][k + 1 :], rows[k][k + 1 :], strict=True)
        ]
        rows[i] = [*rows[i][:k], factor, *changed]


def permutation_of(pivots: Value, size: int) -> Value:
    """Return the order of ``size`` rows after exchanging each with its pivot's, one after the other, from 0 on."""
    *batch, count = shape_of(pivots)
    number = tensor(batch, "i32")
    order = [splat(i, number) for i in range(size)]
    for k in range(count):
        pivot = part_of(pivots, {len(batch): k})
        others = [i for i in range(size) if i != k]
        order = swapped(order, k, others, [compared(pivot, splat(i, number), "EQ") for i in others])
    return stacked(order, len(batch))


def cholesky_factors(matrices: Value, lower: bool) -> list[Value]:
    """Return Cholesky's factors, with the other triangles as they are, and the first minor that is not positive, or 0.

    Of such a matrix what follows that minor is as it is.
    """
    given = elements_of(matrices)
    size, batch = len(given), shape_of(given[0][0])
    number = tensor(batch, "i32")
    factor = [[given[i][j] if lower else given[j][i] for j in range(size)] for i in range(size)]
    failed = splat(0, number)
    for j in range(size):
        rest = _rest(factor, j, j)
        is_positive = compared(rest, splat_like(0, rest), "GT")
        is_first = hlo.and_(hlo.not_(is_positive), compared(failed, splat(0, number), "EQ"))
        failed = hlo.select(is_first, splat(j + 1, number), failed)
        factor[j][j] = hlo.sqrt(rest)
        for i in range(j + 1, size):
            factor[i][j] = hlo.divide(_rest(factor, i, j), factor[j][j])
    result = [[factor[i][j] if lower else factor[j][i] for j in range(size)] for i in range(size)]
    return [matrices_of(result), reshape(failed, batch)]


def _rest(factor: Matrix, i: int, j: int) -> Value:
    """Return what the columns before ``j`` leave of an element."""
    rest = factor[i][j]
    for k in range(j):
        rest = hlo.subtract(rest, hlo.multiply(factor[i][k], factor[j][k]))
    return rest
