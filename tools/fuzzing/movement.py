"""Random operations that move elements: each takes a value and adds an operation of it, or returns None."""

from dataclasses import replace
from math import prod

from xgpu.dtypes import DType
from xgpu.tools.fuzzing import scalar_facts
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import COMPLEX, Facts, computed, integer_range, join
from xgpu.tools.fuzzing.ops import Shape


def broadcast(builder: Builder, value: int) -> int | None:
    """A broadcast_in_dim with new dimensions, and sizes of 1 expanded."""
    random = builder.random
    source = builder.type_of(value).shape
    rank = len(source) + random.choice((0, 1, 1, 2))
    if rank > 8:
        return None
    dims = (
        random.sample(range(rank), len(source))
        if random.random() < 0.3
        else sorted(random.sample(range(rank), len(source)))
    )
    shape = [random.choice((1, 2, 3, 5, 8, 31, 33)) for _ in range(rank)]
    for size, target in zip(source, dims, strict=True):
        if size != 1 or random.random() < 0.4:
            shape[target] = size
    return builder.one("broadcast_in_dim", (value,), builder.facts_of(value), shape=tuple(shape), dims=tuple(dims))


def reshape(builder: Builder, value: int) -> int | None:
    """A reshape: dimensions merged, or split by their factors."""
    shape = _refactored(builder, builder.type_of(value).shape)
    return builder.one("reshape", (value,), builder.facts_of(value), shape=shape)


def _refactored(builder: Builder, source: Shape) -> Shape:
    random = builder.random
    if 0 in source:
        return tuple(random.sample(source, len(source)))
    shape: list[int] = []
    remaining = prod(source)
    while remaining > 1 and len(shape) < 4:
        factors = [f for f in (*range(2, 34), *source, remaining) if remaining % f == 0 and f > 1]
        shape.append(random.choice(factors))
        remaining //= shape[-1]
    if remaining > 1:
        shape.append(remaining)
    for _ in range(random.choice((0, 0, 1))):
        shape.insert(random.randint(0, len(shape)), 1)
    return tuple(shape)


def transpose(builder: Builder, value: int) -> int | None:
    """A transpose by a random permutation."""
    rank = len(builder.type_of(value).shape)
    dims = tuple(builder.random.sample(range(rank), rank))
    return builder.one("transpose", (value,), builder.facts_of(value), dims=dims)


def slice_(builder: Builder, value: int) -> int | None:
    """A slice with random bounds and strides."""
    random = builder.random
    starts, limits, strides = [], [], []
    for size in builder.type_of(value).shape:
        start, limit, stride = 0, size, 1
        if random.random() < 0.6:
            start = random.randint(0, min(size, random.choice((1, 4, size))))
            limit = random.randint(min(start + (random.random() < 0.95), size), size)
            # XLA's compiler for the CPU fails at a slice of nothing at the end of a concatenation.
            start = 0 if start == limit else start
            stride = random.choice((1, 1, 2, 3, 7))
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
    params = {"starts": tuple(starts), "limits": tuple(limits), "strides": tuple(strides)}
    return builder.one("slice", (value,), builder.facts_of(value), **params)


def reverse(builder: Builder, value: int) -> int | None:
    """A reversal of some dimensions."""
    dims = tuple(i for i in range(len(builder.type_of(value).shape)) if builder.random.random() < 0.6)
    return builder.one("reverse", (value,), builder.facts_of(value), dims=dims)


def pad(builder: Builder, value: int) -> int | None:
    """A pad: low, high and interior, and negative amounts, which cut."""
    random = builder.random
    type_, facts = builder.type_of(value), builder.facts_of(value)
    low, high, interior = [], [], []
    for size in type_.shape:
        inside = random.choice((0, 0, 0, 1, 2))
        padded = size + max(size - 1, 0) * inside
        before = random.choice((0, 0, 1, 3, 17, -1, -2))
        after = max(random.choice((0, 0, 1, 2, 5, -1, -3)), -(padded + before))
        if padded + before + after < 0:
            before, after = 0, 0
        low.append(before)
        high.append(after)
        interior.append(inside)
    filler = builder.scalar(type_.dtype, builder.fresh_facts(type_.dtype))
    facts = join(type_.dtype, facts, builder.facts_of(filler))
    params = {"low": tuple(low), "high": tuple(high), "interior": tuple(interior)}
    return builder.one("pad", (value, filler), facts, **params)


def concatenate(builder: Builder, value: int) -> int | None:
    """A concatenation of two to five values, some of them the same."""
    random = builder.random
    type_ = builder.type_of(value)
    if not type_.shape:
        return None
    axis = random.randrange(len(type_.shape))
    parts = [value]
    for _ in range(random.choice((1, 1, 2, 4))):
        other = builder.pick(lambda t, f: t.dtype == type_.dtype and _match_except(t.shape, type_.shape, axis))
        if other is None or random.random() < 0.4:
            shape = list(type_.shape)
            shape[axis] = random.choice((0, 1, 1, 2, 5, type_.shape[axis]))
            other = (
                builder.argument(type_.dtype, tuple(shape))
                if random.random() < 0.7
                else builder.iota(type_.dtype, tuple(shape))
            )
        parts.insert(random.randint(0, len(parts)), other)
    facts = join(type_.dtype, *(builder.facts_of(part) for part in parts))
    return builder.one("concatenate", parts, facts, dimension=axis)


def _match_except(left: Shape, right: Shape, axis: int) -> bool:
    return len(left) == len(right) and all(
        a == b for i, (a, b) in enumerate(zip(left, right, strict=True)) if i != axis
    )


def _index_facts(builder: Builder, dtype: DType, size: int) -> Facts:
    """Bounds of random indices into a dimension: inside it, around it, or anything."""
    lowest, highest = integer_range(dtype)
    lo, hi = builder.random.choice(((0, max(size - 1, 0)), (-3, size + 3), (lowest, highest)))
    return Facts(max(lo, lowest), min(hi, highest), pristine=True)


def starts_of(builder: Builder, sizes: Shape) -> list[int]:
    """Return start indices into dimensions of these sizes, inside and outside the valid range."""
    dtype = builder.index_dtype()
    found = []
    for size in sizes:
        facts = _index_facts(builder, dtype, size)
        if dtype.is_unsigned and builder.random.random() < 0.5:
            found.append(builder.argument(dtype, (), facts))
            continue
        # XLA takes a constant with the highest bit set for negative, also where its type is unsigned.
        found.append(builder.scalar(dtype, replace(facts, hi=min(facts.hi, 2 ** (dtype.bits - 1) - 1))))
    return found


def dynamic_slice(builder: Builder, value: int) -> int | None:
    """A dynamic_slice with start indices inside and outside the valid range."""
    shape = builder.type_of(value).shape
    sizes = tuple(builder.random.choice((size, builder.random.randint(min(1, size), size))) for size in shape)
    operands = (value, *starts_of(builder, shape))
    return builder.one("dynamic_slice", operands, builder.facts_of(value), sizes=sizes)


def dynamic_update_slice(builder: Builder, value: int) -> int | None:
    """A dynamic_update_slice of a value, or of a new argument with a value."""
    type_ = builder.type_of(value)
    fits = builder.pick(
        lambda t, f: (
            t.dtype == type_.dtype and len(t.shape) == len(type_.shape) and all(map(int.__le__, t.shape, type_.shape))
        )
    )
    if fits is None or builder.random.random() < 0.4:
        fits = builder.argument(type_.dtype, tuple(builder.random.randint(min(1, size), size) for size in type_.shape))
    facts = join(type_.dtype, builder.facts_of(value), builder.facts_of(fits))
    return builder.one("dynamic_update_slice", (value, fits, *starts_of(builder, type_.shape)), facts)


def gather(builder: Builder, value: int) -> int | None:
    """A gather with random dimension numbers, indices inside and outside the valid range."""
    random = builder.random
    shape = builder.type_of(value).shape
    dims = list(range(len(shape)))
    batch = [random.choice((1, 2, 3, 5, 8, 17, 33)) for _ in range(random.choice((0, 1, 1, 2)))]
    batching = [i for i in dims if shape[i] > 0 and random.random() < 0.15][: max(0, 3 - len(batch))]
    indices_batching = []
    for target in batching:
        batch.append(shape[target])
        indices_batching.append(len(batch) - 1)
    start_map = random.sample(free := [i for i in dims if i not in batching], random.randint(0, len(free)))
    sizes = [
        1 if i in batching or (size and random.random() < 0.4) else random.randint(min(1, size), size)
        for i, size in enumerate(shape)
    ]
    collapsed = [i for i in free if sizes[i] == 1 and random.random() < 0.7]
    vector_dim = len(batch)
    indices_shape = list(batch)
    if len(start_map) != 1 or random.random() < 0.5:
        vector_dim = random.randint(0, len(batch))
        indices_shape.insert(vector_dim, len(start_map))
        indices_batching = [i + (i >= vector_dim) for i in indices_batching]
    if prod(indices_shape) > builder.limit:
        return None
    window = len(shape) - len(collapsed) - len(batching)
    offsets = sorted(random.sample(range(window + len(batch)), window))
    indices = gather_indices(builder, tuple(indices_shape), max((shape[i] for i in start_map), default=1))
    return builder.one(
        "gather",
        (value, indices),
        builder.facts_of(value),
        sizes=tuple(sizes),
        collapsed=tuple(collapsed),
        batching=tuple(batching),
        indices_batching=tuple(indices_batching),
        start_map=tuple(start_map),
        offsets=tuple(offsets),
        vector_dim=vector_dim,
    )


def gather_indices(builder: Builder, shape: Shape, size: int) -> int:
    """Return indices of a shape into a dimension of a size: one of the graph's values, or a new argument."""
    found = builder.pick(lambda t, f: t.dtype.is_integer and t.shape == shape)
    if found is not None and builder.random.random() < 0.7:
        return found
    dtype = builder.index_dtype()
    return builder.argument(dtype, shape, _index_facts(builder, dtype, size))


def combine_shifted(builder: Builder, value: int) -> int | None:
    """A value combined with itself at other indices: shifted, reversed, transposed, or at run-time starts."""
    type_ = builder.type_of(value)
    move = builder.random.choice((_neighbours, _with_reversed, _with_transposed, _two_windows))
    pair = move(builder, value)
    if pair is None:
        return None
    if type_.dtype.kind == "bool":
        return builder.one("xor", pair, Facts(0, 1))
    facts = scalar_facts.add(type_.dtype, [builder.facts_of(each) for each in pair])
    if facts is not None:
        return builder.one("add", pair, facts)
    if type_.dtype in COMPLEX:
        return None
    return builder.one("maximum", pair, computed(join(type_.dtype, *(builder.facts_of(each) for each in pair))))


def _neighbours(builder: Builder, value: int) -> tuple[int, int] | None:
    """Two slices, each without an element at one end of a dimension."""
    shape = builder.type_of(value).shape
    wide = [i for i, size in enumerate(shape) if size > 1]
    if not wide:
        return None
    axis = builder.random.choice(wide)
    made = []
    for shift in (0, 1):
        starts = tuple(shift if i == axis else 0 for i in range(len(shape)))
        limits = tuple(size - 1 + shift if i == axis else size for i, size in enumerate(shape))
        params = {"starts": starts, "limits": limits, "strides": (1,) * len(shape)}
        made.append(builder.one("slice", (value,), builder.facts_of(value), **params))
    left, right = made
    return None if left is None or right is None else (left, right)


def _two_windows(builder: Builder, value: int) -> tuple[int, int] | None:
    """Two dynamic slices of one size, with starts of their own."""
    shape = builder.type_of(value).shape
    sizes = tuple(builder.random.randint(min(1, size), size) for size in shape)
    made = []
    for _ in range(2):
        operands = (value, *starts_of(builder, shape))
        made.append(builder.one("dynamic_slice", operands, builder.facts_of(value), sizes=sizes))
    left, right = made
    return None if left is None or right is None else (left, right)


def _with_reversed(builder: Builder, value: int) -> tuple[int, int] | None:
    other = reverse(builder, value)
    return None if other is None else (value, other)


def _with_transposed(builder: Builder, value: int) -> tuple[int, int] | None:
    shape = builder.type_of(value).shape
    same = [(i, j) for i in range(len(shape)) for j in range(i) if shape[i] == shape[j]]
    if not same:
        return None
    i, j = builder.random.choice(same)
    dims = list(range(len(shape)))
    dims[i], dims[j] = j, i
    other = builder.one("transpose", (value,), builder.facts_of(value), dims=tuple(dims))
    return None if other is None else (value, other)
