"""Random functions of JAX's own dialect and of complex numbers, bits of other widths, and functions of a region."""

from xgpu.dtypes import dtype_named
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import (
    ALL,
    COMPLEX,
    INTEGERS,
    PACKED,
    PRED,
    TERMINAL,
    Facts,
    has_known_bits,
    integer_range,
)
from xgpu.tools.fuzzing.operands import companion

_DOMAINS = {
    "acos": (-1, 1),
    "acosh": (1, 8),
    "asin": (-1, 1),
    "asinh": (-8, 8),
    "atan": (-8, 8),
    "atanh": (-0.75, 0.75),
    "bessel_i1e": (-8, 8),
    "cosh": (-1, 1),
    "digamma": (0.5, 8),
    "erf": (-3, 3),
    "erf_inv": (-0.75, 0.75),
    "erfc": (-3, 3),
    "lgamma": (2.5, 8),  # Near its zeros, at 1 and 2, XLA's is off by up to 6e-7.
    "sinh": (-1, 1),
}
"""Functions, and where they are of the size of one and well conditioned."""
_COMPLEX = (
    *("cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sign", "sine"),
    *("sqrt", "tan", "tanh"),
)
_PAIRS = ("divide", "power")


def own_function(builder: Builder, value: int) -> int | None:
    """A function of JAX's own dialect, of a new argument in its domain."""
    random = builder.random
    name = random.choice(list(_DOMAINS))
    lo, hi = _DOMAINS[name]
    dtype = dtype_named(random.choice(("f16", "bf16", "f32", "f32", "f64")))
    facts = Facts(lo, hi, 2.0**-6, special=random.random() < 0.2, nonzero=lo > 0, pristine=True)
    argument = builder.argument(dtype, builder.type_of(value).shape, facts)
    return builder.one(name, (argument,), Facts(-10, 10, 0.0, special=True, ulps=TERMINAL))


def complex_function(builder: Builder, value: int) -> int | None:
    """A function of complex numbers of the size of one, of new arguments."""
    random = builder.random
    dtype, shape = random.choice(COMPLEX), builder.type_of(value).shape
    name = random.choice((*_COMPLEX, *_PAIRS))
    known = Facts(0.25, 1.25, 0.25, grid=2, nonzero=True, pristine=True)
    operands = [builder.argument(dtype, shape, known) for _ in range(1 + (name in _PAIRS))]
    return builder.one(name, operands, Facts(-10, 10, 0.0, ulps=TERMINAL))


def other_width(builder: Builder, value: int) -> int | None:
    """Bits taken for those of several narrower numbers, or of a wider one."""
    type_, facts = builder.type_of(value), builder.facts_of(value)
    source = type_.dtype
    if source in (PRED, *COMPLEX, *PACKED) or not (source.is_integer or has_known_bits(source, facts)):
        return None
    targets = [each for each in INTEGERS if each.bits < source.bits]
    if type_.shape:
        targets += [
            each for each in ALL if each.is_integer and each.bits == source.bits * type_.shape[-1] > source.bits
        ]
    if not targets:
        return None
    target = builder.random.choice(targets)
    return builder.one("bitcast_convert", (value,), Facts(*integer_range(target)), dtype=target)


def mapped(builder: Builder, value: int) -> int | None:
    """A function of two arrays that a region computes."""
    random = builder.random
    type_ = builder.type_of(value)
    names = ("and", "or", "xor") if type_.dtype == PRED else ("add", "subtract", "multiply", "maximum", "xor", "or")
    if not type_.dtype.is_integer and type_.dtype != PRED:
        return None
    chosen = tuple(random.choice(names) for _ in range(random.choice((1, 2, 3))))
    facts = Facts(*integer_range(type_.dtype))
    operands = (value, companion(builder, value))
    return builder.one("map", operands, facts, names=chosen, rank=len(type_.shape))
