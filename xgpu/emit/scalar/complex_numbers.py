"""Scalar builders of the operations on complex numbers.

Each works on the real and imaginary parts, with XLA's results for infinite, NaN and zero parts. The exponential,
logarithms and the square root are StableHLO of real numbers by now: the frontend expands them.
"""

from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.dtypes import DType, dtype_named
from xgpu.emit.scalar.convert import convert_value
from xgpu.emit.scalar.op import Builder, ScalarOp, constant
from xgpu.emit.scalar.real import Real, both, either, negated, select
from xgpu.hlo.operations import direction_of
from xgpu.records import dataclass

_INFINITY = float("inf")


@dataclass(frozen=True, eq=False)
class Complex:
    """The parts of a complex number."""

    re: Real
    im: Real

    @property
    def is_zero(self) -> ir.Value:
        """Whether both parts are zeros."""
        return both(self.re.is_zero, self.im.is_zero)


def is_complex_operation(op: ScalarOp) -> bool:
    """Tell whether an operation has complex numbers among its results or operands, or takes them apart."""
    return "complex" in (op.dtype.kind, op.operand_dtype.kind) or op.op.name in ("stablehlo.real", "stablehlo.imag")


def split(value: ir.Value) -> Complex:
    """Return the parts of a complex scalar."""
    part = ir.ComplexType(value.type).element_type
    re, im = (ir.Operation.create(name, results=[part], operands=[value]) for name in ("complex.re", "complex.im"))
    return Complex(Real(re.results[0]), Real(im.results[0]))


def join(number: Complex) -> ir.Value:
    """Return the complex scalar with these parts."""
    type_ = ir.ComplexType.get(number.re.value.type)
    parts = [number.re.value, number.im.value]
    return ir.Operation.create("complex.create", results=[type_], operands=parts).results[0]


def _choose(condition: ir.Value, then: Complex, otherwise: Complex) -> Complex:
    return Complex(select(condition, then.re, otherwise.re), select(condition, then.im, otherwise.im))


def _function(function: Callable[..., Complex]) -> Builder:
    """Return the builder of a function of complex numbers to a complex number."""
    return lambda op: join(function(*(split(operand) for operand in op.operands)))


def _negate(z: Complex) -> Complex:
    return Complex(-z.re, -z.im)


def _add(z: Complex, w: Complex) -> Complex:
    return Complex(z.re + w.re, z.im + w.im)


def _subtract(z: Complex, w: Complex) -> Complex:
    return Complex(z.re - w.re, z.im - w.im)


def _multiply(z: Complex, w: Complex) -> Complex:
    """By definition, without recovering infinities from NaN, as XLA does."""
    return Complex(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re)


def _divide(z: Complex, w: Complex) -> Complex:
    """Divide by the larger part of the divisor first, so that no square overflows (Smith's algorithm)."""
    imaginary_is_larger = abs(w.re).compare("olt", abs(w.im))
    large = select(imaginary_is_larger, w.im, w.re)
    small = select(imaginary_is_larger, w.re, w.im)
    ratio = small / large
    scale = large + small * ratio
    same, crossed = _choose(imaginary_is_larger, Complex(z.im, z.re), z).re, select(imaginary_is_larger, z.re, z.im)
    re = (same + crossed * ratio) / scale
    product = same * ratio
    im = (select(imaginary_is_larger, product, crossed) - select(imaginary_is_larger, crossed, product)) / scale
    lost = both(re.is_nan, im.is_nan)
    return _choose(lost, _divide_specially(z, w, Complex(re, im)), Complex(re, im))


def _divide_specially(z: Complex, w: Complex, quotient: Complex) -> Complex:
    """Return the quotient where zeros or infinities made it NaN (ISO C, annex G.5.1); ``quotient`` if that is right."""
    over_zero = both(w.is_zero, negated(both(z.re.is_nan, z.im.is_nan)))
    signed_infinity = w.re.like(_INFINITY).with_sign_of(w.re)
    large_z, large_w = (either(number.re.is_infinite, number.im.is_infinite) for number in (z, w))
    finite_z, finite_w = (_is_finite(number) for number in (z, w))
    overflows, underflows = both(large_z, finite_w), both(large_w, finite_z)
    # An infinite part counts as 1 and a finite one beside it as 0.
    n, d = _choose(overflows, _boxed(z), z), _choose(underflows, _boxed(w), w)
    scale = select(overflows, w.re.like(_INFINITY), 0.0)
    scaled = Complex((n.re * d.re + n.im * d.im) * scale, (n.im * d.re - n.re * d.im) * scale)
    result = _choose(either(overflows, underflows), scaled, quotient)
    return _choose(over_zero, Complex(signed_infinity * z.re, signed_infinity * z.im), result)


def _is_finite(z: Complex) -> ir.Value:
    return both(*(abs(part).compare("olt", _INFINITY) for part in (z.re, z.im)))


def _boxed(z: Complex) -> Complex:
    re, im = (select(p.is_infinite, p.like(1.0), 0.0).with_sign_of(p) for p in (z.re, z.im))
    return Complex(re, im)


def _magnitude(z: Complex) -> Real:
    """The length, by the ratio of the parts, so that no square overflows or vanishes."""
    x, y = abs(z.re), abs(z.im)
    largest, smallest = Real(ir.arith.maximumf(x.value, y.value)), Real(ir.arith.minimumf(x.value, y.value))
    ratio = smallest / largest
    length = largest * Real(ir.math.sqrt((ratio * ratio + 1.0).value))
    # The ratio of two zeros or infinities is NaN, and either of them is the length.
    return select(length.is_nan, smallest, length)


def _sign(z: Complex) -> Complex:
    """The number of length 1 in the same direction; zeros are themselves."""
    length = _magnitude(z)
    return _choose(z.is_zero, z, Complex(z.re / length, z.im / length))


def _sine_and_cosine(x: Real) -> tuple[Real, Real]:
    return Real(ir.math.sin(x.value)), Real(ir.math.cos(x.value))


def _sinh_and_cosh(x: Real) -> tuple[Real, Real]:
    """Hyperbolic sine and cosine, both by exp(|x|) - 1, which keeps the digits of a small argument."""
    less_one = Real(ir.math.expm1(abs(x).value))
    grown = less_one + 1.0
    sinh = (less_one + less_one / grown) * 0.5
    # Infinity over itself is NaN.
    sinh = select(less_one.is_infinite, less_one, sinh)
    return sinh.with_sign_of(x), grown * 0.5 + grown.like(0.5) / grown


def _sine(z: Complex) -> Complex:
    """sin(x + iy) = sin x cosh y + i cos x sinh y."""
    (sin, cos), (sinh, cosh) = _sine_and_cosine(z.re), _sinh_and_cosh(z.im)
    return Complex(sin * cosh, cos * sinh)


def _cosine(z: Complex) -> Complex:
    """cos(x + iy) = cos x cosh y - i sin x sinh y."""
    (sin, cos), (sinh, cosh) = _sine_and_cosine(z.re), _sinh_and_cosh(z.im)
    return Complex(cos * cosh, -(sin * sinh))


def _tanh(z: Complex) -> Complex:
    """tanh(x + iy) = (sinh x cosh x + i sin y cos y) / (sinh(x)^2 + cos(y)^2), a sum without cancellation."""
    (sin, cos), (sinh, cosh) = _sine_and_cosine(z.im), _sinh_and_cosh(z.re)
    square, rotation = sinh * sinh, sin * cos
    scale = square + cos * cos
    saturated = square.is_infinite
    re = select(saturated, z.re.like(1.0).with_sign_of(z.re), sinh * cosh / scale)
    # The imaginary part of an infinite argument has no direction: a NaN there is none of the result.
    undirected = both(rotation.is_nan, z.re.is_infinite)
    lost = both(rotation.is_nan, negated(z.re.is_infinite))
    im = select(either(undirected, z.im.is_zero), z.im.like(0.0), rotation / scale)
    return Complex(select(lost, z.re.like(float("nan")), re), im)


def _tan(z: Complex) -> Complex:
    """tan z = -i tanh(iz)."""
    rotated = _tanh(Complex(-z.im, z.re))
    return Complex(rotated.im, -rotated.re)


def _expm1(z: Complex) -> Complex:
    """exp(x) cos y - 1 = (exp(x) - 1) cos y + (cos y - 1)."""
    sin, cos = _sine_and_cosine(z.im)
    less_one = Real(ir.math.expm1(z.re.value))
    # Near a cosine of 1, what it lacks is known best from the sine.
    near = (sin.like(0.0) - sin * sin) / (cos + 1.0)
    cos_less_one = select(cos.compare("ogt", 0.0), near, cos - 1.0)
    im = select(z.im.is_zero, z.im.like(0.0), (less_one + 1.0) * sin)
    return Complex(less_one * cos + cos_less_one, im)


def _exp(z: Complex) -> Complex:
    sin, cos = _sine_and_cosine(z.im)
    length = Real(ir.math.exp(z.re.value))
    return Complex(length * cos, select(z.im.is_zero, z.im.like(0.0), length * sin))


def _logistic(z: Complex) -> Complex:
    """1 / (1 + exp(-z))."""
    grown = _exp(_negate(z))
    one, zero = z.re.like(1.0), z.re.like(0.0)
    return _divide(Complex(one, zero), Complex(grown.re + one, grown.im))


def _rsqrt(z: Complex) -> Complex:
    """1 / sqrt(z) = conj(sqrt z) / |z|, of z scaled to parts of at most 1, by the formulas of half an angle."""
    largest = Real(ir.arith.maximumf(abs(z.re).value, abs(z.im).value))
    x, y = abs(z.re) / largest, abs(z.im) / largest
    length = Real(ir.math.sqrt((x * x + y * y).value))
    long = Real(ir.math.sqrt(((length + x) * 0.5).value))
    short = y * 0.5 / long
    scale = Real(ir.math.rsqrt(largest.value)) / length
    left = z.re.compare("olt", 0.0)
    re, im = select(left, short, long) * scale, (select(left, long, short) * scale).with_sign_of(z.im)
    zero = z.re.like(0.0)
    of_infinity = Complex(select(z.re.is_infinite, zero.with_sign_of(z.re), zero), zero.with_sign_of(z.im))
    result = _choose(either(z.re.is_infinite, z.im.is_infinite), of_infinity, Complex(re, im))
    return _choose(z.is_zero, Complex(z.re.like(_INFINITY), z.re.like(float("nan"))), Complex(result.re, -result.im))


def _power(z: Complex, w: Complex) -> Complex:
    """z^w = |z|^u exp(-v arg z) at the angle u arg z + v log|z|, where w = u + iv."""
    length = _magnitude(z)
    angle = Real(ir.math.atan2(z.im.value, z.re.value))
    scale = Real(ir.math.powf(length.value, w.re.value)) * Real(ir.math.exp((-w.im * angle).value))
    sin, cos = _sine_and_cosine(w.re * angle + w.im * Real(ir.math.log(length.value)))
    one, zero = z.re.like(1.0), z.re.like(0.0)
    is_real_power = w.im.is_zero
    result = Complex(scale * cos, scale * sin)
    of_zero = both(length.is_zero, is_real_power, w.re.compare("oge", 0.0))
    result = _choose(of_zero, Complex(zero, zero), result)
    is_one = either(w.is_zero, both(z.re.compare("oeq", 1.0), z.im.is_zero))
    result = _choose(is_one, Complex(one, zero), result)
    of_infinity = both(z.re.compare("oeq", _INFINITY), z.im.is_zero, is_real_power, w.re.compare("one", 0.0))
    at_infinity = select(w.re.compare("ogt", 0.0), z.re, zero)
    return _choose(of_infinity, Complex(at_infinity, zero), result)


def _abs(op: ScalarOp) -> ir.Value:
    return _magnitude(split(op.operands[0])).value


def _compare(op: ScalarOp) -> ir.Value:
    """EQ holds if both parts are equal, NE if one is not; there is no order."""
    z, w = (split(operand) for operand in op.operands)
    direction = direction_of(op.op)
    if direction == "NE":
        return either(z.re.compare("une", w.re), z.im.compare("une", w.im))
    return both(z.re.compare("oeq", w.re), z.im.compare("oeq", w.im))


def _real(op: ScalarOp) -> ir.Value:
    (value,) = op.operands
    return split(value).re.value if op.operand_dtype.kind == "complex" else value


def _imag(op: ScalarOp) -> ir.Value:
    (value,) = op.operands
    return split(value).im.value if op.operand_dtype.kind == "complex" else constant(value.type, 0.0)


def _complex(op: ScalarOp) -> ir.Value:
    re, im = op.operands
    return join(Complex(Real(re), Real(im)))


def _convert(op: ScalarOp) -> ir.Value:
    return convert_number(op.operands[0], op.operand_dtype, op.dtype)


def convert_number(value: ir.Value, source: DType, target: DType) -> ir.Value:
    """Convert a scalar between any two types: a real number has no imaginary part, and becomes one by losing it."""
    if "complex" not in (source.kind, target.kind):
        return convert_value(value, source, target)
    source_part, target_part = _part(source), _part(target)
    z = split(value) if source.kind == "complex" else None
    re = convert_value(value if z is None else z.re.value, source_part, target_part)
    if target.kind != "complex":
        return re
    im = constant(re.type, 0.0) if z is None else convert_value(z.im.value, source_part, target_part)
    return join(Complex(Real(re), Real(im)))


def _part(dtype: DType) -> DType:
    """Return the type of the parts of a complex type; any other type is its own."""
    return dtype_named({"c64": "f32", "c128": "f64"}.get(dtype.hlo, dtype.hlo))


def _bitcast_convert(op: ScalarOp) -> ir.Value:
    return op.operands[0]


COMPLEX: Mapping[str, Builder] = {
    "stablehlo.abs": _abs,
    "stablehlo.add": _function(_add),
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.compare": _compare,
    "stablehlo.complex": _complex,
    "stablehlo.convert": _convert,
    "stablehlo.cosine": _function(_cosine),
    "stablehlo.divide": _function(_divide),
    "stablehlo.exponential_minus_one": _function(_expm1),
    "stablehlo.imag": _imag,
    "stablehlo.logistic": _function(_logistic),
    "stablehlo.multiply": _function(_multiply),
    "stablehlo.negate": _function(_negate),
    "stablehlo.power": _function(_power),
    "stablehlo.real": _real,
    "stablehlo.rsqrt": _function(_rsqrt),
    "stablehlo.select": lambda op: ir.arith.select(*op.operands),
    "stablehlo.sign": _function(_sign),
    "stablehlo.sine": _function(_sine),
    "stablehlo.subtract": _function(_subtract),
    "stablehlo.tan": _function(_tan),
    "stablehlo.tanh": _function(_tanh),
}
"""The builders of the operations that take or make complex numbers, by name."""
