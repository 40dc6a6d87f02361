"""Random operations of several results: joint reductions, loops of several states, barriers, the largest elements."""

from math import prod

from xgpu.dtypes import dtype_named
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import COMPLEX, INTEGERS, PACKED, PRED, Facts, computed, integer_range, join
from xgpu.tools.fuzzing.operands import companion, value_of_type
from xgpu.tools.fuzzing.ops import JOINT, Shape, TensorType

_MOST_STEPS = 4


def joint_reduction(builder: Builder, value: int) -> int | None:
    """Whole numbers reduced together, of an array or of its windows: products of complex numbers, or least triples."""
    random = builder.random
    given = builder.type_of(value)
    dtype = given.dtype if given.dtype in INTEGERS else random.choice(INTEGERS)
    name = random.choice(("gauss", "least"))
    count, type_ = JOINT[name], TensorType(dtype, given.shape)
    arrays = [value if type_ == given else builder.argument(dtype, type_.shape)]
    arrays += [value_of_type(builder, type_, value) for _ in range(count - 1)]
    lowest, highest = integer_range(dtype)
    firsts = (1, 0) if name == "gauss" else (highest,) * count
    starts = [builder.constant(dtype, (), Facts(number, number)) for number in firsts]
    known = [Facts(lowest, highest)] * count
    if random.random() < 0.3 and type_.shape:
        results = builder.add("reduce_window", (*arrays, *starts), known, combiners=(name,), **_windows(builder, value))
    else:
        rank = len(type_.shape)
        dims = tuple(sorted(random.sample(range(rank), random.randint(min(1, rank), rank))))
        results = builder.add("reduce", (*arrays, *starts), known, combiners=(name,), dims=dims)
    return random.choice(results) if results else None


def _windows(builder: Builder, value: int) -> dict[str, Shape]:
    random, shape = builder.random, builder.type_of(value).shape
    window = tuple(random.choice((1, 2, 3)) for _ in shape)
    ones = (1,) * len(shape)
    return {
        "window": window,
        "strides": tuple(random.choice((1, 1, 2)) for _ in shape),
        "base_dilations": ones,
        "window_dilations": tuple(random.choice((1, 1, 2)) for _ in shape),
        "low": tuple(random.choice((0, extent - 1)) for extent in window),
        "high": tuple(random.choice((0, 1)) for _ in window),
    }


def whiles(builder: Builder, value: int) -> int | None:
    """A loop of states of one type: exchanged, combined, turned, and updated in part by each other."""
    random = builder.random
    type_, facts = builder.type_of(value), builder.facts_of(value)
    dtype = type_.dtype
    states = [value, *(companion(builder, value) for _ in range(random.choice((1, 1, 2, 3))))]
    moves = ["keep", "keep", "keep", "choice", "reverse"]
    if type_.shape and type_.shape[0] > 1:
        moves += ["update", "update", "update", "roll"]
    combined: tuple[str, ...] = ("maximum", "minimum")
    if dtype in COMPLEX:
        combined = ()
    elif dtype == PRED:
        combined = ("and", "or", "xor")
    elif dtype.is_integer:
        combined = ("add", "subtract", "xor", "maximum")
    names = [*moves, *combined]
    counts = {"keep": 1, "reverse": 1, "roll": 1}
    steps = []
    for _ in states:
        name = random.choice(names)
        steps.append((name, *(random.randrange(len(states)) for _ in range(counts.get(name, 2)))))
    known = computed(join(dtype, facts, *(builder.facts_of(state) for state in states)))
    if not dtype.is_float and dtype not in COMPLEX:
        known = Facts(*integer_range(dtype))
    most = random.randint(0, _MOST_STEPS)
    make = builder.argument if random.random() < 0.6 else builder.constant
    end = make(dtype_named("s32"), (), Facts(most, most))
    results = builder.add("whiles", (end, *states), [Facts(0, most), *[known] * len(states)], steps=tuple(steps))
    return random.choice(results[1:]) if results else None


def barrier(builder: Builder, value: int) -> int | None:
    """A barrier between values and what is computed of them."""
    operands = [value, *(found for _ in range(2) if (found := builder.pick()) is not None)]
    known = [builder.facts_of(operand) for operand in operands]
    results = builder.add("optimization_barrier", operands, known)
    return builder.random.choice(results) if results else None


def largest(builder: Builder, value: int) -> int | None:
    """The largest elements of rows and their places, of which equal ones come in their order."""
    type_, facts = builder.type_of(value), builder.facts_of(value)
    is_ordered = not type_.dtype.is_float or (facts.nonzero and facts.exact and not facts.special)
    if not type_.shape or not prod(type_.shape) or type_.dtype in (PRED, *PACKED, *COMPLEX) or not is_ordered:
        return None
    size = type_.shape[-1]
    known = [computed(facts), Facts(0, size)]
    results = builder.add("top_k", (value,), known, k=builder.random.randint(1, min(size, 9)))
    return builder.random.choice(results) if results else None
