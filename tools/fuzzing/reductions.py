"""Random reductions whose result does not depend on the order: what a compiler makes of others is its own choice.

StableHLO leaves it the number of times that the initial value is taken in, too. Both xgpu and its reference take it in
once, so it may be anything where one operation combines two elements.
"""

from dataclasses import replace
from math import prod

from xgpu.dtypes import DType
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    PRED,
    Facts,
    computed,
    has_floats,
    integer_range,
    integers,
    join,
    on_grid,
)
from xgpu.tools.fuzzing.ops import Shape


def reduce(builder: Builder, value: int) -> int | None:
    """One input reduced along some dimensions."""
    shape = builder.type_of(value).shape
    dims = _dims(builder, shape)
    part = _combiner(builder, value, dims)
    if part is None:
        return None
    combiner, init, facts = part
    swapped = builder.random.random() < 0.3
    return builder.one("reduce", (value, init), facts, dims=dims, combiners=(combiner,), swapped=swapped)


def reduce_several(builder: Builder, value: int) -> int | None:
    """Several inputs of one shape reduced together: each by itself, or an argmax."""
    shape = builder.type_of(value).shape
    if shape and builder.random.random() < 0.6:
        return _argmax(builder, value)
    dims = _dims(builder, shape)
    other = builder.pick(lambda t, f: t.shape == shape)
    inputs = [value, value if other is None else other]
    parts = [part for each in inputs if (part := _combiner(builder, each, dims)) is not None]
    if len(parts) < len(inputs):
        return None
    operands = (*inputs, *(init for _, init, _ in parts))
    combiners, facts = tuple(name for name, _, _ in parts), [known for _, _, known in parts]
    results = builder.add("reduce", operands, facts, dims=dims, combiners=combiners)
    return results[-1] if results else None


def _dims(builder: Builder, shape: Shape) -> Shape:
    dims = [i for i in range(len(shape)) if builder.random.random() < 0.5]
    if not dims and shape:
        dims = [builder.random.randrange(len(shape))]
    return tuple(dims)


def _count(shape: Shape, dims: Shape) -> int:
    """Elements that make one element of the result."""
    return prod(shape[i] for i in dims)


def _combiner(builder: Builder, value: int, dims: Shape) -> tuple[str, int, Facts] | None:
    """Return a combiner's name, its initial value and the facts of the result."""
    return combiner(builder, value, _count(builder.type_of(value).shape, dims))


def combiner(builder: Builder, value: int, count: int, starts_plain: bool = False) -> tuple[str, int, Facts] | None:
    """Return how up to ``count`` elements are combined: a name, the initial value and the facts of the result.

    The initial value changes nothing if ``starts_plain``, or may be taken in any number of times.
    """
    type_, facts = builder.type_of(value), builder.facts_of(value)
    dtype = type_.dtype
    if facts.special:
        return None  # XLA's vector code for large reductions loses NaN.
    names = ["maximum", "minimum"]
    if dtype in COMPLEX:
        return _sum(builder, dtype, facts, count, starts_plain) if facts.exact else None
    if dtype.is_integer:
        names += ["add", "add", "multiply", "and", "or", "xor"]
    elif dtype == PRED:
        names = ["and", "or", "xor"]
    elif facts.exact and facts.grid is not None:
        names += ["add", "add", "add"]
    name = builder.random.choice(names)
    if name in ("maximum", "minimum"):
        return _extremum(builder, dtype, facts, name)
    if dtype.is_float:
        return _sum(builder, dtype, facts, count, starts_plain)
    lowest, highest = integer_range(dtype)
    identity = {"add": 0, "multiply": 1, "and": -1 if dtype.is_signed else highest, "or": 0, "xor": 0}[name]
    start = _init(builder, dtype, identity) if starts_plain else _any_or(builder, dtype, identity)
    return name, start, integers(dtype, lowest, highest)


def _extremum(builder: Builder, dtype: DType, facts: Facts, name: str) -> tuple[str, int, Facts]:
    ends = (-64.0, 64.0) if dtype.is_float else integer_range(dtype)
    init = _any_or(builder, dtype, ends[name == "minimum"])
    return name, init, computed(join(dtype, facts, builder.facts_of(init)))


def _sum(builder: Builder, dtype: DType, facts: Facts, count: int, starts_plain: bool) -> tuple[str, int, Facts] | None:
    """A sum of floats, exact in every order and from every start."""
    init = _init(builder, dtype, 0.0) if starts_plain else _any_or(builder, dtype, 0.0)
    start = builder.facts_of(init)
    if facts.grid is None or start.grid is None:
        return None
    total = facts.magnitude * max(1, count) + start.magnitude
    lo = -total if min(facts.lo, start.lo) < 0 else 0
    result = on_grid(dtype, lo, total, max(facts.grid, start.grid))
    return None if result is None else ("add", init, result)


def _any_or(builder: Builder, dtype: DType, number: float) -> int:
    """Return what a reduction starts from: any scalar, or a number that changes nothing."""
    if builder.random.random() < 0.4:
        return builder.scalar(dtype, replace(builder.fresh_facts(dtype), special=False))
    return _init(builder, dtype, number)


def _init(builder: Builder, dtype: DType, number: float) -> int:
    facts = Facts(number, number)
    if has_floats(dtype):
        facts = replace(facts, grid=0, nonzero=number != 0)
    return builder.constant(dtype, (), facts)


def _argmax(builder: Builder, value: int) -> int | None:
    type_, facts = builder.type_of(value), builder.facts_of(value)
    if not facts.exact or facts.special or type_.dtype not in (*FLOATS, *INTEGERS):
        return None
    axis = builder.random.randrange(len(type_.shape))
    index_dtype = builder.random.choice(INTEGERS[2:4])
    last = max(0, type_.shape[axis] - 1)
    numbers = builder.one("iota", (), Facts(0, last), shape=type_.shape, dtype=index_dtype, iota_dimension=axis)
    if numbers is None:
        return None
    lowest = facts.lo - 1 if type_.dtype.is_float else integer_range(type_.dtype)[0]
    init = _init(builder, type_.dtype, -256.0 if type_.dtype.is_float and facts.lo > -256 else lowest)
    first = _init(builder, index_dtype, 0)
    known = [computed(join(type_.dtype, facts, builder.facts_of(init))), Facts(0, last)]
    results = builder.add("reduce", (value, numbers, init, first), known, dims=(axis,), combiners=("argmax",))
    if results is None:
        return None
    return builder.random.choice(results)
