"""Facts about the result of an elementwise operation, from those of its operands, or that it must not be used.

Every function returns None where two correct compilers could differ by more than `compare` tolerates.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xgpu.dtypes import DType
from xgpu.tools.fuzzing.facts import (
    COMPLEX,
    MAX_ULPS,
    PACKED,
    PRECISION,
    PRED,
    SMALL_FLOATS,
    TERMINAL,
    Facts,
    computed,
    integer_range,
    integers,
    join,
    on_grid,
    representable,
)

Rule = Callable[[DType, Sequence[Facts]], Facts | None]


def _bounded(dtype: DType, facts: Facts) -> Facts | None:
    """Return the facts if elements are normal numbers and not too inexact."""
    tolerable = facts.ulps <= MAX_ULPS[dtype.hlo] or facts.ulps == TERMINAL
    return facts if representable(dtype, facts) and tolerable else None


def _inexact(lo: float, hi: float, smallest: float, ulps: float, special: bool, nonzero: bool = False) -> Facts:
    return Facts(lo, hi, smallest, None, special=special, nonzero=nonzero, ulps=max(ulps, 1.0))


def _products(x: Facts, y: Facts) -> tuple[float, float]:
    corners = [x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi]
    return min(corners), max(corners)


def _one_sign(*facts: Facts) -> bool:
    return all(f.lo >= 0 for f in facts) or all(f.hi <= 0 for f in facts)


def add(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    """A sum: exact on a grid; else exact operands of any signs, or inexact ones of one sign (no cancellation)."""
    x, y = facts
    lo, hi = x.lo + y.lo, x.hi + y.hi
    if dtype.is_integer:
        return integers(dtype, lo, hi)
    special = x.special or y.special
    if dtype in COMPLEX and (x.grid is None or y.grid is None):
        return None
    if x.exact and y.exact and x.grid is not None and y.grid is not None:
        exact = on_grid(dtype, lo, hi, max(x.grid, y.grid), special=special)
        if exact is not None or dtype in COMPLEX:
            return exact
    if not _one_sign(x, y):
        if not (x.exact and y.exact):
            return None
        smallest = min(x.smallest, y.smallest) * 2.0 ** -PRECISION[dtype.hlo]
        return _bounded(dtype, _inexact(lo, hi, smallest, 1, special))
    nonzero = x.nonzero or y.nonzero
    return _bounded(dtype, _inexact(lo, hi, min(x.smallest, y.smallest), max(x.ulps, y.ulps) + 1, special, nonzero))


def negate(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    """A sign change; integers wrap."""
    (x,) = facts
    return integers(dtype, -x.hi, -x.lo) if dtype.is_integer else computed(x, lo=-x.hi, hi=-x.lo)


def _subtract(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    x, y = facts
    return add(dtype, (x, replace(y, lo=-y.hi, hi=-y.lo)))


def multiply(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    """A product: exact on a grid."""
    x, y = facts
    lo, hi = _products(x, y)
    if dtype in COMPLEX:
        size = 2 * x.magnitude * y.magnitude
        return None if x.grid is None or y.grid is None else on_grid(dtype, -size, size, x.grid + y.grid)
    if dtype.is_integer:
        return integers(dtype, lo, hi)
    if (x.special and not y.nonzero) or (y.special and not x.nonzero):
        return None  # Of NaN times 0, XLA makes 0 where the 0 is a converted pred.
    special, nonzero = x.special or y.special, x.nonzero and y.nonzero
    if x.exact and y.exact and x.grid is not None and y.grid is not None:
        exact = on_grid(dtype, lo, hi, x.grid + y.grid, special=special, nonzero=nonzero)
        if exact is not None:
            return exact
    return _bounded(dtype, _inexact(lo, hi, x.smallest * y.smallest, x.ulps + y.ulps + 1, special, nonzero))


def _divide(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    x, y = facts
    if dtype.is_integer:
        return integers(dtype, *integer_range(dtype))
    # The sign of a zero divisor is not tracked, nor is that of a quotient by infinity.
    if not y.nonzero or y.special:
        return None
    high = x.magnitude / y.smallest
    smallest = x.smallest / y.magnitude
    lo = 0.0 if _one_sign(x, y) else -high
    return _bounded(dtype, _inexact(lo, high, smallest, x.ulps + y.ulps + 1, x.special, x.nonzero))


def _remainder(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    x, y = facts
    if dtype.is_integer:
        return integers(dtype, *integer_range(dtype))
    if not (x.exact and y.exact and y.nonzero) or x.grid is None or y.grid is None:
        return None
    size = min(x.magnitude, y.magnitude) if not y.special else x.magnitude
    return on_grid(dtype, -size if x.lo < 0 else 0, size, max(x.grid, y.grid), special=x.special or y.special)


def _extremum(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    return computed(join(dtype, *facts))


def _clamp(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    return computed(join(dtype, *facts))


def _absolute(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    (x,) = facts
    lo = 0 if x.lo <= 0 <= x.hi else min(abs(x.lo), abs(x.hi))
    return integers(dtype, lo, x.magnitude) if dtype.is_integer else computed(x, lo=lo, hi=x.magnitude)


def _sign(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    (x,) = facts
    lo, hi = (-1 if x.lo < 0 else 0), (1 if x.hi > 0 else 0)
    if dtype.is_integer:
        return integers(dtype, lo, hi)
    return Facts(lo, hi, 1.0, 0, special=x.special, nonzero=x.nonzero) if x.exact else None


def _rounded(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    (x,) = facts
    lo, hi = float(math.floor(x.lo)), float(math.ceil(x.hi))
    return on_grid(dtype, lo, hi, 0, special=x.special) if x.exact else None


def _sqrt(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    (x,) = facts
    if x.lo < 0:
        return None
    result = _inexact(0, math.sqrt(x.hi), math.sqrt(x.smallest), x.ulps / 2 + 1, x.special, x.nonzero)
    return _bounded(dtype, result)


def _rsqrt(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    (x,) = facts
    if x.lo < 0 or not x.nonzero:
        return None
    ends = 1 / math.sqrt(max(x.hi, x.smallest)), 1 / math.sqrt(x.smallest)
    return _bounded(dtype, _inexact(0, ends[1], ends[0], x.ulps / 2 + 2, x.special, not x.special))


def _cbrt(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    (x,) = facts
    return _bounded(
        dtype, _inexact(math.cbrt(x.lo), math.cbrt(x.hi), math.cbrt(x.smallest), x.ulps / 3 + 3, x.special, x.nonzero)
    )


def _exponential(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    (x,) = facts
    if x.magnitude > 40:
        return None
    lo, hi = math.exp(x.lo), math.exp(x.hi)
    return _bounded(dtype, _inexact(0, hi, lo, x.ulps * max(1, x.magnitude) + 2, x.special, not x.special))


def _of_exact(largest: float, lo: float, hi: float, positive: bool = False) -> Rule:
    """Return the rule of a function that is well conditioned at exact operands up to ``largest`` alone."""

    def rule(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
        (x,) = facts
        if not x.exact or x.magnitude > largest or (positive and not (x.lo >= 0 and x.nonzero)):
            return None
        return _inexact(lo, hi, 0.0, TERMINAL, True)

    return rule


def _atan2(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    if any(not (x.exact and x.nonzero) or x.special for x in facts):
        return None
    return _inexact(-4, 4, 0.0, TERMINAL, True)


def _power(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    x, y = facts
    if dtype.is_integer:
        # XLA looks at the lowest six bits of an exponent alone, and divides one by a zero whose exponent is -1.
        is_same = y.hi <= 63 and (y.lo >= 0 or x.nonzero)
        return integers(dtype, *integer_range(dtype)) if is_same else None
    if not (x.exact and y.exact and x.nonzero and x.lo >= 0) or x.special or y.special or y.magnitude > 3:
        return None
    return _bounded(dtype, _inexact(0, x.magnitude**3 + 8, (x.smallest / max(1, x.magnitude)) ** 3, TERMINAL, True))


def _whole(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    return integers(dtype, *integer_range(dtype))


def _bits(dtype: DType, facts: Sequence[Facts]) -> Facts | None:
    # Of a negative integer of 4 bits, XLA for the CPU counts the bits of its byte.
    if dtype in PACKED and facts[0].lo < 0:
        return None
    return integers(dtype, 0, dtype.bits)


_BOTH: Mapping[str, tuple[int, Rule]] = {
    "abs": (1, _absolute),
    "add": (2, add),
    "clamp": (3, _clamp),
    "divide": (2, _divide),
    "maximum": (2, _extremum),
    "minimum": (2, _extremum),
    "multiply": (2, multiply),
    "negate": (1, negate),
    "power": (2, _power),
    "remainder": (2, _remainder),
    "sign": (1, _sign),
    "subtract": (2, _subtract),
}

FLOAT_OPS: Mapping[str, tuple[int, Rule]] = {
    **_BOTH,
    "atan2": (2, _atan2),
    "cbrt": (1, _cbrt),
    "ceil": (1, _rounded),
    "cosine": (1, _of_exact(64, -1, 1)),
    "exponential": (1, _exponential),
    "exponential_minus_one": (1, _of_exact(9, -1, 10000)),
    "floor": (1, _rounded),
    "log": (1, _of_exact(1e30, -100, 100, positive=True)),
    "log_plus_one": (1, _of_exact(1e30, -100, 100, positive=True)),
    "logistic": (1, _of_exact(9, 0, 1)),
    "round_nearest_afz": (1, _rounded),
    "round_nearest_even": (1, _rounded),
    "rsqrt": (1, _rsqrt),
    "sine": (1, _of_exact(64, -1, 1)),
    "sqrt": (1, _sqrt),
    "tan": (1, _of_exact(1.5, -15, 15)),
    "tanh": (1, _of_exact(1e4, -1, 1)),
}
"""Number of operands and rule of each operation on floats whose operands and result have one type."""

_BITWISE: Mapping[str, tuple[int, Rule]] = {
    "and": (2, _whole),
    "not": (1, _whole),
    "or": (2, _whole),
    "xor": (2, _whole),
}

INTEGER_OPS: Mapping[str, tuple[int, Rule]] = {
    **_BOTH,
    **_BITWISE,
    "count_leading_zeros": (1, _bits),
    "popcnt": (1, _bits),
    "shift_left": (2, _whole),
    "shift_right_arithmetic": (2, _whole),
    "shift_right_logical": (2, _whole),
}
"""The same for integers, signed and unsigned."""

PRED_OPS: Mapping[str, tuple[int, Rule]] = {
    **_BITWISE,
    "maximum": (2, _whole),
    "minimum": (2, _whole),
    "multiply": (2, _whole),
}
"""The same for pred, without add: StableHLO says it is or, as XLA's code has it, but its folding of constants xor."""

COMPLEX_OPS: Mapping[str, tuple[int, Rule]] = {name: _BOTH[name] for name in ("add", "multiply", "negate", "subtract")}
"""The same for complex numbers."""


def operations_on(dtype: DType) -> Mapping[str, tuple[int, Rule]]:
    """Return the operations on elements of a type: no roundings of 8-bit floats, of which XLA folds some to NaN."""
    if dtype in SMALL_FLOATS:
        return {name: rule for name, rule in FLOAT_OPS.items() if not name.startswith("round_")}
    if dtype.is_float:
        return FLOAT_OPS
    return PRED_OPS if dtype == PRED else COMPLEX_OPS if dtype in COMPLEX else INTEGER_OPS


UNSIGNED_REFUSED = ("abs", "negate", "sign")
"""Operations that StableHLO does not define for unsigned integers."""


def converted(source: DType, target: DType, x: Facts) -> Facts | None:
    """Return the facts of a conversion, or None if it could turn a rounding error into another answer."""
    if source in COMPLEX and target not in COMPLEX:
        return None
    if target.kind == "bool":
        return Facts(0, 1) if x.exact else None
    if target.is_integer:
        return _to_integer(source, target, x)
    if source.is_float or source in COMPLEX:
        return _to_float(source, target, x)
    exact = on_grid(target, x.lo, x.hi, 0)
    if exact is not None:
        return exact
    # Wider integers reach f16 and bf16 through f32, rounded twice, in some compilers.
    if x.magnitude > 2**24 and target.bits == 16:
        return None
    result = Facts(x.lo, x.hi, 1.0)
    return result if representable(target, result) else None


def _to_integer(source: DType, target: DType, x: Facts) -> Facts | None:
    lowest, highest = integer_range(target)
    if not source.is_float:
        return integers(target, x.lo, x.hi)
    if not x.exact:
        return None
    lo, hi = max(lowest, math.trunc(x.lo)), min(highest, math.trunc(x.hi))
    if lo > hi or x.special:
        return integers(target, lowest, highest)
    return integers(target, lo, hi)


def _to_float(source: DType, target: DType, x: Facts) -> Facts | None:
    wider = PRECISION[target.hlo] >= PRECISION[source.hlo] and target.bits >= source.bits
    if wider:
        return x if x.exact else None
    grid = x.grid
    if grid is not None and on_grid(target, x.lo, x.hi, grid) is None:
        grid = None
    if grid is None and (not representable(target, x) or (source.bits == 64 and target.bits == 16)):
        return None
    ulps = (
        0.0
        if x.exact
        else TERMINAL
        if x.ulps == TERMINAL
        else 1 + x.ulps * 2.0 ** (PRECISION[target.hlo] - PRECISION[source.hlo])
    )
    return replace(x, grid=grid, ulps=ulps, pristine=x.pristine and grid is not None)
