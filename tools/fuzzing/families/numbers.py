"""Random operations on numbers at the ends of their types, on their bits, and on complex numbers."""

from dataclasses import replace

from xgpu.dtypes import DType, dtype_named
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    PACKED,
    PRED,
    SMALL_FLOATS,
    TERMINAL,
    Facts,
    computed,
    integer_range,
    on_grid,
    whole_floats,
)
from xgpu.tools.fuzzing.operands import companion

_EXACT = {
    "abs": 1,
    "ceil": 1,
    "floor": 1,
    "maximum": 2,
    "minimum": 2,
    "negate": 1,
    "remainder": 2,
    "round_nearest_afz": 1,
    "round_nearest_even": 1,
    "sign": 1,
}
"""Functions whose result is a number of the type at all of its numbers, and how many operands each has."""
_ROUNDED = {
    "add": 2,
    "atan2": 2,
    "cbrt": 1,
    "divide": 2,
    "multiply": 2,
    "power": 2,
    "sqrt": 1,
    "subtract": 2,
    "tanh": 1,
}
"""Other functions that are defined at all of them: infinities and NaN of theirs are the same everywhere."""


def extremes(builder: Builder, value: int) -> int | None:
    """An operation on new arguments: zeros of both signs, infinities, NaN, ties, and the ends of types."""
    random = builder.random
    dtype, shape = random.choice(FLOATS), builder.type_of(value).shape
    kinds: tuple[str, ...] = ("exact", "exact", "rounded", "converted", "precision", "compared", "clamped")
    if random.random() < 0.3:
        # What is rounded is rounded twice, to a wider type that is each compiler's own.
        dtype, kinds = random.choice(SMALL_FLOATS), ("exact", "compared", "compared", "clamped")
    whole = whole_floats(dtype)
    first, second = (builder.argument(dtype, shape, whole) for _ in range(2))
    kind = random.choice(kinds)
    if kind == "converted":
        return _converted(builder, first)
    if kind == "precision":
        # XLA writes a number of fewer bits as one of the type itself, so that the bits must be the type's at most.
        bits = {"exponent_bits": random.randint(2, 8 if dtype.bits > 16 else 5), "mantissa_bits": random.randint(1, 7)}
        attributes = {name: f"{count} : i32" for name, count in bits.items()}
        return builder.one("reduce_precision", (first,), computed(whole), attributes=attributes)
    if kind == "compared":
        direction = random.choice(("EQ", "NE", "LT", "LE", "GT", "GE"))
        attributes = {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}
        if random.random() < 0.4:
            attributes["compare_type"] = "#stablehlo<comparison_type TOTALORDER>"
        return builder.one("compare", (first, second), Facts(0, 1), dtype=PRED, attributes=attributes)
    if kind == "clamped":
        bounds = [builder.argument(dtype, shape, whole) for _ in range(2)]
        return builder.one("clamp", (bounds[0], first, bounds[1]), computed(whole), main=1)
    table = _EXACT if kind == "exact" else _ROUNDED
    name = random.choice(list(table))
    facts = computed(whole, ulps=0.0 if kind == "exact" else TERMINAL)
    return builder.one(name, (first, second)[: table[name]], facts)


def _converted(builder: Builder, value: int) -> int | None:
    """Integers end where the type does, and NaN is 0; floats become infinite."""
    random, source = builder.random, builder.type_of(value).dtype
    if random.random() < 0.6:
        target = random.choice(INTEGERS)
        return builder.one("convert", (value,), Facts(*integer_range(target)), dtype=target)
    # Numbers of 64 bits are rounded twice in some compilers on their way to 16.
    targets = [each for each in FLOATS if source.bits < 64 or each.bits > 16]
    target = random.choice(targets)
    return builder.one("convert", (value,), computed(whole_floats(target)), dtype=target)


def integer_edges(builder: Builder, value: int) -> int | None:
    """A quotient, a shift or a count of bits of new arguments: by zero, of the least number by -1, by the width."""
    random = builder.random
    dtype, shape = builder.dtype(), builder.type_of(value).shape
    if not dtype.is_integer:
        return None
    lowest, highest = integer_range(dtype)
    first = builder.argument(dtype, shape)
    second = builder.argument(dtype, shape, Facts(max(lowest, -1), min(highest, random.choice((1, dtype.bits + 1)))))
    binary = ("divide", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical")
    unary = ("count_leading_zeros",) if dtype in PACKED else ("count_leading_zeros", "popcnt")
    name = random.choice((*binary, *unary))
    operands = (first, second) if name in binary else (first,)
    return builder.one(name, operands, Facts(lowest, highest))


def complex_parts(builder: Builder, value: int) -> int | None:
    """A complex number made of floats; or the parts, the size or the square of one."""
    random = builder.random
    dtype, facts = builder.type_of(value).dtype, builder.facts_of(value)
    if dtype.is_integer:
        dtype = random.choice(COMPLEX)
        value = builder.argument(dtype, builder.type_of(value).shape)
        facts = builder.facts_of(value)
    if dtype in COMPLEX:
        real = _part_of(dtype)
        if random.random() < 0.3:
            size = _size(real, facts)
            return None if size is None else builder.one("abs", (value,), size, dtype=real)
        return builder.one(random.choice(("real", "imag")), (value,), computed(facts), dtype=real)
    if not facts.exact or facts.special or dtype not in map(_part_of, COMPLEX):
        return None
    other = companion(builder, value)
    known = builder.facts_of(other)
    if not known.exact or known.special:
        return None
    target = next(each for each in COMPLEX if _part_of(each) == dtype)
    both = Facts(
        min(facts.lo, known.lo),
        max(facts.hi, known.hi),
        min(facts.smallest, known.smallest),
        None if facts.grid is None or known.grid is None else max(facts.grid, known.grid),
    )
    if both.grid is not None and on_grid(target, both.lo, both.hi, both.grid) is None:
        both = replace(both, grid=None)
    return builder.one("complex", (value, other), both, dtype=target)


def _size(real: DType, facts: Facts) -> Facts | None:
    """Return the facts of the size of a complex number, if it is within the type."""
    most = 2 * facts.magnitude
    return Facts(0, most, 0.0, ulps=TERMINAL) if on_grid(real, 0, most, 0) else None


def _part_of(dtype: DType) -> DType:
    return dtype_named("f32" if dtype.bits == 64 else "f64")
