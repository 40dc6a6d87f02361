"""Random operations with a kernel family of their own: windows, scatters, products, sorts, and loops over rows."""

from math import prod

from xgpu.dtypes import DType, dtype_named
from xgpu.tools.fuzzing import movement, scalar_facts
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    PRED,
    Facts,
    computed,
    has_floats,
    integers,
    join,
    on_grid,
    whole_floats,
)
from xgpu.tools.fuzzing.operands import value_of_type
from xgpu.tools.fuzzing.ops import Shape, TensorType
from xgpu.tools.fuzzing.reductions import combiner

_WIDEST = 4096
"""Rows of a scan, and elements of a sorted row."""


def reduce_window(builder: Builder, value: int) -> int | None:
    """A reduction over windows: strides, dilations of both kinds, and padding."""
    random = builder.random
    shape = builder.type_of(value).shape
    if not shape:
        return None  # XLA for the CPU leaves out what such a reduction starts from.
    window = tuple(random.choice((1, 1, 2, 3, max(1, size))) if random.random() < 0.8 else 1 for size in shape)
    params = {
        "window": window,
        "strides": tuple(random.choice((1, 1, 1, 2, 3, extent)) for extent in window),
        "base_dilations": tuple(random.choice((1, 1, 1, 1, 2, 3)) for _ in shape),
        "window_dilations": tuple(random.choice((1, 1, 1, 1, 2, 3)) for _ in shape),
        "low": tuple(random.choice((0, 0, 1, 2, -1, extent - 1)) for extent in window),
        "high": tuple(random.choice((0, 0, 1, 2, -2, extent - 1)) for extent in window),
    }
    if max(window) == 1 or any(sum(each) < 0 for each in zip(shape, params["low"], params["high"], strict=True)):
        # XLA for the CPU ends the process at windows of 1 with padding that only cuts off edges.
        params |= {name: tuple(max(0, each) for each in params[name]) for name in ("low", "high")}
    return _windowed(builder, value, params)


def prefixes(builder: Builder, value: int) -> int | None:
    """A reduction of what precedes or follows each element along a dimension, as a cumulative sum is written."""
    random = builder.random
    shape = builder.type_of(value).shape
    axes = [i for i, size in enumerate(shape) if size > 1]
    if not axes:
        return None
    axis, ones, zeros = random.choice(axes), (1,) * len(shape), (0,) * len(shape)
    window = tuple(size if i == axis else 1 for i, size in enumerate(shape))
    before = tuple(size - 1 if i == axis else 0 for i, size in enumerate(shape))
    low, high = random.choice(((before, zeros), (zeros, before)))
    names = ("strides", "base_dilations", "window_dilations")
    return _windowed(builder, value, {"window": window, **dict.fromkeys(names, ones), "low": low, "high": high})


def _windowed(builder: Builder, value: int, params: dict[str, Shape]) -> int | None:
    inputs = [value]
    if builder.random.random() < 0.2:
        other = builder.pick(lambda t, f: t == builder.type_of(value))
        assert other is not None
        inputs.append(other)
    parts = [combiner(builder, each, prod(params["window"]), starts_plain=True) for each in inputs]
    known = [part for part in parts if part is not None]
    if len(known) < len(inputs):
        return None
    names, starts, made = zip(*known, strict=True)
    # A window in nothing but padding has the initial value.
    dtype = builder.type_of(value).dtype
    facts = [join(dtype, each, builder.facts_of(start)) for each, start in zip(made, starts, strict=True)]
    results = builder.add("reduce_window", (*inputs, *starts), facts, combiners=names, **params)
    return builder.random.choice(results) if results else None


def scatter(builder: Builder, value: int) -> int | None:
    """A scatter whose result does not depend on the order of updates, indices inside and outside the range."""
    random = builder.random
    shape = builder.type_of(value).shape
    if not shape:
        return None
    batch = [random.choice((1, 2, 3, 5, 8, 17, 33, 130)) for _ in range(random.choice((0, 1, 1, 1, 2)))]
    batching = [i for i, size in enumerate(shape) if size > 0 and random.random() < 0.1][:1]
    indices_batching = [len(batch) + i for i in range(len(batching))]
    batch += [shape[i] for i in batching]
    free = [i for i in range(len(shape)) if i not in batching]
    if not free:
        return None
    start_map = random.sample(free, random.randint(1, len(free)))
    inserted = [i for i in start_map if shape[i] and random.random() < 0.7]
    window = [random.choice((shape[i], random.randint(min(1, shape[i]), shape[i]))) for i in free if i not in inserted]
    offsets = sorted(random.sample(range(len(window) + len(batch)), len(window)))
    sizes, rest = iter(window), iter(batch)
    updates = tuple(next(sizes if i in offsets else rest) for i in range(len(window) + len(batch)))
    vector_dim = random.randint(0, len(batch))
    indices_shape = (*batch[:vector_dim], len(start_map), *batch[vector_dim:])
    if max(prod(updates), prod(indices_shape)) > builder.limit:
        return None
    arrays = [value]
    if random.random() < 0.25:
        other = builder.pick(lambda t, f: t.shape == shape)
        assert other is not None
        arrays.append(other)
    parts = [_scattered(builder, each, updates, prod(batch)) for each in arrays]
    known = [part for part in parts if part is not None]
    if len(known) < len(arrays):
        return None
    names, updated, facts = zip(*known, strict=True)
    indices = movement.gather_indices(builder, indices_shape, max(shape[i] for i in start_map))
    results = builder.add(
        "scatter",
        (*arrays, indices, *updated),
        facts,
        combiners=names,
        offsets=tuple(offsets),
        inserted=tuple(sorted(inserted)),
        batching=tuple(batching),
        indices_batching=tuple(i + (i >= vector_dim) for i in indices_batching),
        start_map=tuple(start_map),
        vector_dim=vector_dim,
        unique=False,
    )
    return random.choice(results) if results else None


def _scattered(builder: Builder, value: int, shape: Shape, count: int) -> tuple[str, int, Facts] | None:
    """Return how up to ``count`` updates of a shape are taken into a value: a name, the updates and the facts."""
    type_ = TensorType(builder.type_of(value).dtype, shape)
    updates = value_of_type(builder, type_)
    both = join(type_.dtype, builder.facts_of(value), builder.facts_of(updates))
    if count == 1 and builder.random.random() < 0.6:
        return "second", updates, both
    if both.special:
        return None
    lowest = integers(type_.dtype, -float("inf"), float("inf")) if type_.dtype.is_integer else Facts(0, 1)
    if type_.dtype == PRED:
        return builder.random.choice(("and", "or", "xor")), updates, lowest
    if type_.dtype.is_integer and builder.random.random() < 0.7:
        return builder.random.choice(("add", "add", "add", "multiply", "and", "or", "xor")), updates, lowest
    if both.exact and both.grid is not None and builder.random.random() < 0.7:
        total = both.magnitude * (count + 1)
        facts = on_grid(type_.dtype, -total if both.lo < 0 else 0, total, both.grid)
        if facts is not None:
            return "add", updates, facts
    return None if type_.dtype in COMPLEX else (builder.random.choice(("maximum", "minimum")), updates, computed(both))


def dot_general(builder: Builder, value: int) -> int | None:
    """A product of matrices whose sums are exact, with dimensions in any order."""
    random = builder.random
    type_, facts = builder.type_of(value), builder.facts_of(value)
    shape, dims = type_.shape, list(range(len(type_.shape)))
    if type_.dtype == PRED or not shape or not facts.exact or facts.special:
        return None
    contracted = random.sample(dims, random.choice((0, 1, 1, 1, min(2, len(dims)))))
    batch = [i for i in dims if i not in contracted and random.random() < 0.25]
    ours = [("b", i) for i in range(len(batch))] + [("c", i) for i in range(len(contracted))]
    theirs = ours + [("f", random.choice((1, 2, 5, 8, 16, 33))) for _ in range(random.choice((0, 1, 1, 2)))]
    random.shuffle(theirs)
    source = {"b": batch, "c": contracted}
    sizes = tuple(number if kind == "f" else shape[source[kind][number]] for kind, number in theirs)
    if prod(sizes) > builder.limit:
        return None
    other = value_of_type(builder, TensorType(type_.dtype, sizes), value)
    made = sum_of_products(builder, value, other, prod(shape[i] for i in contracted))
    if made is None:
        return None
    dtype, known = made
    # Arrays stay on the left or the right whichever of them was there first.
    places = {"b": tuple(theirs.index(("b", i)) for i in range(len(batch)))}
    places["c"] = tuple(theirs.index(("c", i)) for i in range(len(contracted)))
    pairs = {"batch": (tuple(batch), places["b"]), "contracted": (tuple(contracted), places["c"])}
    operands = (value, other)
    if random.random() < 0.5:
        operands = (other, value)
        pairs = {name: (second, first) for name, (first, second) in pairs.items()}
    return builder.one("dot_general", operands, known, dtype=dtype, **pairs)


def sum_of_products(builder: Builder, left: int, right: int, count: int) -> tuple[DType, Facts] | None:
    """Return a type for sums of so many products, and their facts, which are exact; None if there is no such type."""
    dtype = builder.type_of(left).dtype
    if dtype.is_integer:
        wide = dtype_named("s32" if dtype.is_signed else "u32") if 8 <= dtype.bits < 32 else dtype
        dtype = wide if builder.random.random() < 0.5 else dtype
        return dtype, integers(dtype, -float("inf"), float("inf"))
    product = scalar_facts.multiply(dtype, [builder.facts_of(left), builder.facts_of(right)])
    if product is None or not product.exact or product.grid is None or product.special:
        return None
    wide = dtype_named("f32") if dtype.bits == 16 and builder.random.random() < 0.5 else dtype
    total = product.magnitude * max(1, count)
    known = on_grid(wide, -total if product.lo < 0 else 0, total, product.grid)
    return None if known is None else (wide, known)


def sort(builder: Builder, value: int) -> int | None:
    """A stable sort of rows, and of other arrays by the same keys or with keys of their own."""
    random = builder.random
    type_ = builder.type_of(value)
    if not type_.shape or max(type_.shape) > _WIDEST or type_.dtype in COMPLEX:
        return None
    if type_.dtype in FLOATS and random.random() < 0.3:
        value = builder.argument(type_.dtype, type_.shape, whole_floats(type_.dtype))
    facts = builder.facts_of(value)
    orders = [order for order in ("plain", "total", "numpy") if order == "plain" or type_.dtype.is_float]
    order = random.choice(orders)
    # The order of NaN is that of its bits in one of these, and in one there is none.
    if not facts.exact or (order == "total" and not facts.pristine) or (order == "plain" and facts.special):
        return None
    operands = [value]
    for _ in range(random.choice((0, 0, 1, 1, 1, 2, 3))):
        dtype = random.choice(INTEGERS)
        operands.append(random.choice((builder.iota, builder.argument))(dtype, type_.shape))
    keys = random.randint(1, len(operands))
    for _ in range(random.choice((0, 0, 1, 2))):
        operands.append(value_of_type(builder, TensorType(builder.dtype(), type_.shape)))
    params = {"dimension": random.randrange(len(type_.shape)), "direction": random.choice(("LT", "GT"))}
    # Of arrays that are all keys, equal elements may change places: but zeros of two signs are equal in some orders.
    params["stable"] = keys < len(operands) or type_.dtype.is_float or random.random() < 0.5
    known = [builder.facts_of(operand) for operand in operands]
    results = builder.add("sort", operands, known, order=order, keys=keys, **params)
    return random.choice(results) if results else None


def scan(builder: Builder, value: int) -> int | None:
    """A loop over the rows of a value that carries a state."""
    random = builder.random
    type_, facts = builder.type_of(value), builder.facts_of(value)
    if not type_.shape or not 0 < type_.shape[0] <= min(_WIDEST, builder.limit // 8) or facts.special:
        return None
    state = value_of_type(builder, TensorType(type_.dtype, type_.shape[1:]))
    both = join(type_.dtype, facts, builder.facts_of(state))
    if both.special:
        return None
    name, known = random.choice(("maximum", "minimum")), computed(both)
    if type_.dtype == PRED:
        name, known = random.choice(("and", "or", "xor")), Facts(0, 1)
    elif type_.dtype.is_integer:
        name = random.choice(("add", "subtract", "multiply", "xor", "maximum"))
        known = integers(type_.dtype, -float("inf"), float("inf"))
    elif both.exact and both.grid is not None:
        total = both.magnitude * (type_.shape[0] + 1)
        exact = on_grid(type_.dtype, -total, total, both.grid)
        if exact is not None:
            name, known = random.choice(("add", "subtract")), exact
    if type_.dtype in COMPLEX and name in ("maximum", "minimum"):
        return None
    flags = {key: random.random() < chance for key, chance in (("own", 0.4), ("before", 0.4), ("idle", 0.1))}
    # Steps that take a row which another step has written may double what is in it.
    may_repeat = not flags["own"] or not has_floats(type_.dtype) or name in ("maximum", "minimum")
    places = ((1, 0), (-1, -1), *(((2, 0), (-3, -1), (1, 3), (0, 1)) if may_repeat else ()))
    count = Facts(0, type_.shape[0])
    place = random.choice(places)
    results = builder.add("scan", (state, value), [count, known, known], combiner=name, place=place, **flags)
    return results[-1] if results else None
