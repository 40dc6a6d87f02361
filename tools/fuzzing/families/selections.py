"""Random conditionals, selections from windows, and random bits."""

from xgpu.dtypes import dtype_named
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import COMPLEX, INTEGERS, PRED, Facts, computed, integer_range, integers, join, on_grid
from xgpu.tools.fuzzing.operands import companion, value_of_type
from xgpu.tools.fuzzing.ops import Shape, TensorType

_ALGORITHMS = {"DEFAULT": (2, 3), "PHILOX": (2, 3), "THREE_FRY": (2,)}
"""The generators of random bits, and how many words a state of each has."""


def branches(builder: Builder, value: int) -> int | None:
    """A conditional of two results, some of its blocks with a conditional in them; its index may be out of range."""
    random = builder.random
    dtype = builder.type_of(value).dtype
    other = companion(builder, value)
    combining: tuple[str, ...] = ("maximum", "minimum")
    if dtype in COMPLEX:
        combining = ()
    elif dtype == PRED:
        combining = ("and", "or")
    names = ("first", "second", "reverse", *combining)

    def pair() -> tuple[str, str]:
        return random.choice(names), random.choice(names)

    count = random.choice((1, 2, 2, 3))
    index = builder.argument(PRED, ()) if count == 2 and random.random() < 0.6 else None
    if index is None:
        index = builder.scalar(dtype_named("s32"), Facts(-2, count + 1))
    made = tuple((pair(), pair()) if random.random() < 0.3 else pair() for _ in range(count))
    known = computed(join(dtype, builder.facts_of(value), builder.facts_of(other)))
    operands = (index, builder.argument(PRED, ()), value, other)
    results = builder.add("branches", operands, [known, known], branches=made)
    return random.choice(results) if results else None


def select_and_scatter(builder: Builder, value: int) -> int | None:
    """Sources added where windows have their largest or smallest element, of which there may be several."""
    random = builder.random
    type_, facts = builder.type_of(value), builder.facts_of(value)
    shape, dtype = type_.shape, type_.dtype
    if not shape or not facts.exact or facts.special or dtype in (PRED, *COMPLEX):
        return None
    # XLA for the CPU takes windows dimension by dimension where they are padded, so that of equal elements it may
    # select another than the first in the order of their indices.
    axis = random.randrange(len(shape))
    extent = random.choice((2, 3, max(1, min(shape[axis], 17))))
    window = tuple(extent if i == axis else 1 for i in range(len(shape)))
    params: dict[str, Shape] = {
        "window": window,
        "strides": tuple(random.choice((1, 2, 3, extent)) for extent in window),
        "low": tuple(random.choice((0, 0, extent - 1)) for extent in window),
        "high": tuple(random.choice((0, 0, extent - 1)) for extent in window),
    }
    padded = [size + low + high for size, low, high in zip(shape, params["low"], params["high"], strict=True)]
    counts = zip(padded, window, params["strides"], strict=True)
    windows = tuple((size - extent) // stride + 1 if size >= extent else 0 for size, extent, stride in counts)
    source = value_of_type(builder, TensorType(dtype, windows))
    known = builder.facts_of(source)
    total = known.magnitude * max(1, TensorType(dtype, windows).size)
    added = integers(dtype, -float("inf"), float("inf")) if dtype.is_integer else None
    if dtype.is_float and known.exact and known.grid is not None and not known.special:
        added = on_grid(dtype, -total, total, known.grid)
    if added is None:
        return None
    zero = builder.constant(dtype, (), Facts(0, 0, grid=0) if dtype.is_float else Facts(0, 0))
    direction = random.choice(("GE", "LE", "GT", "LT"))
    return builder.one("select_and_scatter", (value, source, zero), added, direction=direction, **params)


def random_bits(builder: Builder, value: int) -> int | None:
    """Random bits of a shape, and the state after them, from any state."""
    random = builder.random
    name = random.choice(list(_ALGORITHMS))
    dtype = random.choice([each for each in INTEGERS if each.is_unsigned])
    words = dtype_named("u64")
    state = builder.argument(words, (random.choice(_ALGORITHMS[name]),), Facts(*integer_range(words)))
    known = [Facts(*integer_range(words)), Facts(*integer_range(dtype))]
    shape = builder.type_of(value).shape
    results = builder.add("rng_bit_generator", (state,), known, algorithm=name, dtype=dtype, shape=shape)
    return results[-1] if results else None
