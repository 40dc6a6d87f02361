"""QR factors by Householder's reflections, as LAPACK defines them: one column after the other, all elements at once.

Matrices have one dimension before their rows, for a batch. A reflection is ``1 - tau v v'``, with ``v`` of one at its
own row and zeros above; what is below is kept in the column, under the diagonal of R. Of complex numbers ``v'`` is the
conjugate of ``v``, and so is ``tau`` that of the reflection that undoes another; the diagonal of R is real.
"""

from collections.abc import Sequence

from xgpu.hlo.stablehlo_builder import (
    Value,
    compared,
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
    conjugate,
    divided,
    is_complex,
    largest_part,
    like,
    numbers_of,
    part,
    real,
    squared,
    with_element,
)
from xgpu.structure import element_of


def factors(matrices: Value) -> tuple[Value, Value]:
    """Return R with the reflections below it, and their ``tau``, as LAPACK's ``geqrf`` does."""
    batch, rows, columns = shape_of(matrices)
    count = min(rows, columns)

    def step(k: Value, values: Sequence[Value]) -> Sequence[Value]:
        a, taus = values
        beta, tau, direction = _reflection(part(a, (None, None, k)), k)
        i, j = numbers_of(a)
        here = like(k, i)
        changed = _reflected(a, direction, conjugate(tau))
        own = hlo.select(compared(i, here, "EQ"), like(beta, a), like(direction, a))
        of_column = hlo.select(compared(i, here, "LT"), a, own)
        rest = hlo.select(compared(j, here, "GT"), changed, a)
        number = hlo.iota(tensor([batch, count], element_of(k)), 1)
        chosen = compared(number, like(k, number), "EQ")
        taus = hlo.select(chosen, like(reshape(tau, [batch, 1]), taus), taus)
        return [hlo.select(compared(j, here, "EQ"), of_column, rest), taus]

    found = repeated(count, [matrices, splat(0, tensor([batch, count], element_of(matrices)))], step)
    return found[0], found[1]


def product(packed: Value, taus: Value, right: Value, turned: bool = False) -> Value:
    """Return ``q @ right``, or ``q' @ right`` if ``turned``, for the product ``q`` of all reflections."""
    count = shape_of(taus)[1]

    def step(turn: Value, values: Sequence[Value]) -> Sequence[Value]:
        k = turn if turned else hlo.subtract(splat_like(count - 1, turn), turn)
        column = part(packed, (None, None, k))
        i, _ = numbers_of(column)
        here = like(k, i)
        one, zero = splat_like(1, column), splat_like(0, column)
        below = hlo.select(compared(i, here, "GT"), column, zero)
        direction = hlo.select(compared(i, here, "EQ"), one, below)
        tau = reshape(part(taus, (None, k)), [shape_of(taus)[0], 1, 1])
        return [_reflected(values[0], direction, conjugate(tau) if turned else tau)]

    return repeated(count, [right], step)[0]


def columns_of_product(packed: Value, taus: Value, columns: int) -> Value:
    """Return the first columns of the product of all reflections, as LAPACK's ``orgqr`` does."""
    batch, rows, _ = shape_of(packed)
    i, j = numbers_of(splat(0, tensor([batch, rows, columns], element_of(packed))))
    return product(packed, taus, with_element(compared(i, j, "EQ"), element_of(packed)))


def _reflection(column: Value, k: Value) -> tuple[Value, Value, Value]:
    """Return what element ``k`` becomes when a reflection makes those below it zero, its ``tau`` and its ``v``.

    Elements are scaled by the largest of them, so that their squares neither overflow nor vanish.
    """
    i, _ = numbers_of(column)
    here = like(k, i)
    zero, one = splat_like(0, column), splat_like(1, column)
    is_below = compared(i, here, "GT")
    below = hlo.select(is_below, column, zero)
    alpha = part(column, (None, k, None))
    largest = _combined(largest_part(hlo.select(compared(i, here, "GE"), column, zero)), hlo.maximum)
    scale = hlo.select(compared(largest, splat_like(0, largest), "EQ"), splat_like(1, largest), largest)
    near = divided(below, like(scale, column))
    squares, first = _combined(squared(near), hlo.add), divided(alpha, scale)
    length = hlo.sqrt(hlo.add(squared(first), squares))
    own = real(alpha)
    is_zero = compared(squares, splat_like(0, squares), "EQ")
    if is_complex(alpha):
        is_zero = hlo.and_(is_zero, compared(hlo.imag(alpha), splat_like(0, own), "EQ"))
    is_negative = compared(own, splat_like(0, own), "LT")
    reflected = _signed(hlo.multiply(length, scale), is_negative)
    beta = hlo.select(is_zero, own, reflected)
    tau = hlo.select(is_zero, splat_like(0, own), hlo.divide(hlo.subtract(beta, own), beta))
    if is_complex(alpha):
        # Both of the quotient are scaled, as a complex quotient has squares of its divisor's parts.
        tau = hlo.complex(tau, hlo.select(is_zero, splat_like(0, own), hlo.negate(hlo.divide(hlo.imag(alpha), beta))))
        below, divisor = near, hlo.subtract(first, with_element(_signed(length, is_negative), element_of(column)))
    else:
        divisor = hlo.subtract(alpha, beta)
    divisor = hlo.select(is_zero, splat_like(1, alpha), divisor)
    direction = hlo.select(compared(i, here, "EQ"), one, hlo.divide(below, like(divisor, column)))
    return with_element(beta, element_of(column)), tau, direction


def _signed(length: Value, is_negative: Value) -> Value:
    """Return lengths, with the other sign than that of what they are reflected from."""
    return hlo.select(is_negative, length, hlo.negate(length))


def _reflected(a: Value, direction: Value, tau: Value) -> Value:
    """Return ``a - tau v (v' a)``."""
    batch, _, columns = shape_of(a)
    start = splat(0, tensor([], element_of(a)))
    sums = reduced(hlo.multiply(like(conjugate(direction), a), a), start, [1], hlo.add)
    parts = hlo.multiply(like(tau, a), like(reshape(sums, [batch, 1, columns]), a))
    return hlo.subtract(a, hlo.multiply(like(direction, a), parts))


def _combined(column: Value, combine: object) -> Value:
    """Return all elements of a column, combined from 0 on: one for each matrix."""
    start = splat(0, tensor([], element_of(column)))
    return reshape(reduced(column, start, [1, 2], combine), [shape_of(column)[0], 1, 1])  # type: ignore[arg-type]
