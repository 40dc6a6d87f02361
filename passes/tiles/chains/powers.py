"""Powers of two by multiplications and additions, for some of the weights: one unit computes all that are instructions.

That unit has an eighth of the rate of additions. (Source: FlashAttention-4 computes a share of its exponentials so.)
"""

from xgpu import ir
from xgpu.hlo.constants import splat_of
from xgpu.indexing.access import shape_of
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.records import dataclass
from xgpu.structure import element_of, is_constant, is_result_of, producer

_COEFFICIENTS = {
    8: (0.6932829022407532, 0.2422109693288803, 0.05500893294811249),
    11: (0.6931241750717163, 0.24024099111557007, 0.055906426161527634, 0.009582852944731712),
}
"""Those of 2^x - 1 from -1/2 to 1/2, by the bits that results are then rounded to; the best for the relative error of
2^x, 2^-13.3 and 2^-18.4, with a constant term of 1."""
_WHOLE = 1.5 * 2.0**23
"""A number to which others are added to be rounded to whole ones, which its lowest bits then are."""
_LEAST = -127.0
"""An exponent whose power has no bits: zero."""
_MANTISSA, _ONE = 23, 0x3F800000
SHARED = 8
"""Of so many neighbours of a row, in a thread, some are computed so."""


@dataclass(frozen=True)
class Exponent:
    """The exponent of a weight, a power of two: ``factor`` times ``value``, without ``rows``, a value of each row."""

    value: ir.Value
    factor: float
    rows: ir.Value

    @classmethod
    def of(cls, power: ir.Operation) -> "Exponent | None":
        """Return the exponent of the weights of a tile, of f32; None if they have another form."""
        exponent = power.operands[1]
        if not is_result_of(exponent, "stablehlo.subtract") or len(shape_of(exponent)) != 2:
            return None
        product, rows = producer(exponent).operands
        if not is_result_of(product, "stablehlo.multiply") or not is_result_of(rows, "stablehlo.broadcast_in_dim"):
            return None
        value, factor = producer(product).operands
        number = number_of(factor) if is_constant(factor) else None
        return None if number is None else cls(value, number, rows)


def is_of_two(power: ir.Operation) -> bool:
    """Whether an operation computes powers of two."""
    base = power.operands[0]
    return is_constant(base) and number_of(base) == 2


def number_of(constant: ir.Value) -> float | None:
    """Return the element of a constant of f32 whose elements are equal."""
    number = splat_of(producer(constant))
    if not isinstance(number, ir.FloatAttr) or not isinstance(element_of(constant), ir.F32Type):
        return None
    return float(number.value)


@dataclass(frozen=True)
class Powers:
    """The powers that are computed so: ``count`` of `SHARED`, evenly spread; weights are rounded to ``bits``."""

    count: int = 0
    bits: int = 8

    def has(self, number: int) -> bool:
        """Whether that of a thread's element of a row is."""
        return number * self.count % SHARED < self.count


def power_of_two(exponent: ir.Value, bits: int) -> ir.Value:
    """Write 2^x of an f32 up to 127, for results of so many bits: zero below 2^-126, NaN of NaN."""
    f32 = exponent.type
    whole = constant(_WHOLE, f32)
    bounded = ir.arith.maximumf(exponent, constant(_LEAST, f32))
    moved = ir.arith.addf(bounded, whole)
    rest = ir.arith.subf(bounded, ir.arith.subf(moved, whole))
    *_, last = coefficients = [constant(each, f32) for each in _COEFFICIENTS[bits]]
    fraction = last
    for each in (*coefficients[-2::-1], constant(1.0, f32)):
        fraction = ir.math.fma(fraction, rest, each)
    shifted = ir.arith.shli(b.bitcast(moved, integer_type(32)), constant(_MANTISSA, integer_type(32)))
    scale = b.bitcast(b.add(shifted, _ONE), f32)
    power: ir.Value = ir.arith.mulf(fraction, scale)
    return power
