"""Rewrites scatters that add floats so that the sums do not depend on the order of the additions.

Integer addition has no order, so the updates of each element are added as integers of 64 bits, in units that follow
from the largest of them: the unit is chosen so that not even all updates together overflow. A first scatter finds the
largest magnitude for each element, by its bits, a second one adds; their results are as large as the operand. Of f32
and narrower types at least 62 bits less those of the number of updates count below the largest, 38 for 2^24 updates;
f64 has a second integer for what is below the first's unit. So a sum is more exact than one that rounds every step.
Infinities and NaN are counted where the largest magnitude is one of them.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, convert, hlo, shape_of, splat, splat_like, tensor
from xgpu.indexing.scatter_maps import scatter_maps
from xgpu.passes.prepare.scatters.builder import Places
from xgpu.records import dataclass
from xgpu.structure import element_of

MOST_WINDOWS = 2**31
"""Updates of one element that can be counted; there are no more of them than windows."""
_SUM_BITS = 62


@dataclass(frozen=True)
class _Format:
    """A float format: its element type, the integer type of its bits, how many of those are the mantissa's.

    A finite number's magnitude is less than 2 to the power of its exponent field, at least 1, minus ``bias``. ``limbs``
    is how many integers its sums take.
    """

    element: str
    integer: str
    mantissa: int
    bias: int
    limbs: int

    @property
    def magnitude(self) -> int:
        """A mask of all bits but the sign's."""
        return (1 << (int(self.integer[1:]) - 1)) - 1

    @property
    def infinity(self) -> int:
        """The bits of infinity, which are those of the largest number that is not NaN."""
        return (2 * self.bias + 3) << self.mantissa


_F32 = _Format("f32", "i32", 23, 126, 1)
_F64 = _Format("f64", "i64", 52, 1022, 2)


def sum_in_any_order(op: ir.Operation) -> None:
    """Replace a scatter that adds floats to one operand."""
    operand, updates = op.operands[0], op.operands[2]
    with ir.InsertionPoint(op), op.location:
        windows = scatter_maps(op).windows
        format_ = _F64 if str(element_of(operand)) == "f64" else _F32
        total = _Sum(Places.of(op), format_, windows).of(operand, convert(updates, format_.element))
        op.results[0].replace_all_uses_with(total)
    op.erase()


@dataclass(frozen=True)
class _Sum:
    """Sums of at most ``windows`` updates at each place."""

    places: Places
    format: _Format
    windows: int

    @property
    def _bits(self) -> int:
        """Bits of an update's integer, so that the sum has no more than `_SUM_BITS`."""
        return _SUM_BITS - (self.windows - 1).bit_length()

    def of(self, operand: Value, updates: Value) -> Value:
        """Return ``operand`` with the updates added to it and the sum rounded to its type."""
        shape = shape_of(operand)
        magnitudes = self._magnitudes(updates)
        largest = self.places.combine(splat(0, tensor(shape, self.format.integer)), magnitudes, hlo.maximum)
        limbs = self._limbs(updates, magnitudes, self.places.gather(largest))
        # Each starts from zeros of its own, which it updates in place.
        sums = [self.places.combine(splat(0, tensor(shape, "i64")), limb, hlo.add) for limb in limbs]
        total = hlo.select(self._is_finite(largest), self._sum(sums, largest), self._special_sum(sums[0], largest))
        result = convert(hlo.add(convert(operand, "f64"), total), element_of(operand))
        is_untouched = _compare(largest, "EQ", 0)
        return hlo.select(is_untouched, operand, result)

    def _magnitudes(self, numbers: Value) -> Value:
        """Return the bits of numbers without their signs: integers in the order of the magnitudes, NaN the largest.

        That of 0.0 is 1, which is as small: unlike -0.0 it is no update that leaves all numbers as they are.
        """
        bits = hlo.bitcast_convert(tensor(shape_of(numbers), self.format.integer), numbers)
        magnitudes = hlo.and_(bits, splat_like(self.format.magnitude, bits))
        return hlo.select(_compare(bits, "EQ", 0), splat_like(1, bits), magnitudes)

    def _is_finite(self, largest: Value) -> Value:
        return _compare(largest, "LT", self.format.infinity)

    def _exponent(self, largest: Value) -> Value:
        """Return the power of two by which updates are multiplied, as s64."""
        field = hlo.shift_right_logical(largest, splat_like(self.format.mantissa, largest))
        field = hlo.maximum(convert(field, "i64"), splat(1, tensor(shape_of(field), "i64")))
        return hlo.subtract(splat_like(self._bits + self.format.bias, field), field)

    def _limbs(self, updates: Value, magnitudes: Value, largest: Value) -> list[Value]:
        """Return the updates as integers, those of one limb after the other; counts where they are not finite."""
        rest = _scale(convert(updates, "f64"), self._exponent(largest))
        is_finite = self._is_finite(largest)
        is_infinite = _compare(magnitudes, "EQ", self.format.infinity)
        one = splat(1, tensor(shape_of(updates), "i64"))
        sign = hlo.select(_compare(updates, "LT", 0), splat_like(1 << 32, one), one)
        count = hlo.select(is_infinite, sign, splat_like(0, one))
        limbs = []
        for _ in range(self.format.limbs):
            whole = hlo.round_nearest_even(rest)
            limbs.append(hlo.select(is_finite, convert(whole, "i64"), count))
            rest = hlo.multiply(hlo.subtract(rest, whole), splat_like(2.0**self._bits, rest))
            count = splat_like(0, one)
        return limbs

    def _sum(self, sums: Sequence[Value], largest: Value) -> Value:
        """Return the sum that the limbs stand for, as f64."""
        total = convert(sums[-1], "f64")
        for limb in sums[-2::-1]:
            total = hlo.add(convert(limb, "f64"), hlo.multiply(total, splat_like(2.0**-self._bits, total)))
        return _scale(total, hlo.negate(self._exponent(largest)))

    def _special_sum(self, counts: Value, largest: Value) -> Value:
        """Return the sum of updates that are not all finite, from how many infinities of each sign there are."""
        shape = tensor(shape_of(counts), "f64")
        positive = _compare(hlo.and_(counts, splat_like((1 << 32) - 1, counts)), "NE", 0)
        negative = _compare(hlo.shift_right_logical(counts, splat_like(32, counts)), "NE", 0)
        infinity = splat(float("inf"), shape)
        signed = hlo.select(positive, infinity, hlo.negate(infinity))
        has_nan = hlo.or_(_compare(largest, "GT", self.format.infinity), hlo.and_(positive, negative))
        return hlo.select(has_nan, splat(float("nan"), shape), signed)


def _compare(value: Value, direction: str, number: float) -> Value:
    return hlo.compare(value, splat_like(number, value), hlo.ComparisonDirectionAttr.get(direction))


def _scale(value: Value, exponent: Value) -> Value:
    """Return f64 times a power of two, in two steps, each of which is a number of that type."""
    half = hlo.shift_right_arithmetic(exponent, splat_like(1, exponent))
    for part in (half, hlo.subtract(exponent, half)):
        field = hlo.shift_left(hlo.add(part, splat_like(1023, part)), splat_like(52, part))
        value = hlo.multiply(value, hlo.bitcast_convert(value.type, field))
    return value
