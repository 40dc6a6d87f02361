"""Random groups of operations that the planner has rewrites for."""

from math import prod

from xgpu.dtypes import dtype_named
from xgpu.tools.fuzzing import scalar_facts
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import COMPLEX, PRED, Facts, computed, has_floats, join
from xgpu.tools.fuzzing.ops import Shape
from xgpu.tools.fuzzing.reductions import combiner


def split_transposed(builder: Builder, value: int) -> int | None:
    """Dimensions split, transposed and merged again, as heads of attention and pixels of upscaled images are."""
    random = builder.random
    shape = builder.type_of(value).shape
    parts: list[int] = []
    for size in shape:
        factors = [f for f in range(2, size) if size % f == 0]
        if factors and len(parts) < 5 and random.random() < 0.7:
            parts += [factor := random.choice(factors), size // factor]
        else:
            parts.append(size)
    split = _reshaped(builder, value, tuple(parts))
    order = random.sample(range(len(parts)), len(parts))
    turned = None if split is None else _transposed(builder, split, tuple(order))
    if turned is None or random.random() < 0.3:
        return turned
    merged: list[int] = []
    for position in order:
        if merged and random.random() < 0.4:
            merged[-1] *= parts[position]
        else:
            merged.append(parts[position])
    return _reshaped(builder, turned, tuple(merged))


def by_statistics(builder: Builder, value: int) -> int | None:
    """Rows combined with what they, or their transpose, are reduced to; and those results reduced again."""
    random = builder.random
    shape = builder.type_of(value).shape
    if not shape:
        return None
    dims = tuple(sorted(random.sample(range(len(shape)), random.randint(1, min(2, len(shape))))))
    kept = [i for i in range(len(shape)) if i not in dims]
    source, order = value, list(range(len(shape)))
    if random.random() < 0.4:
        random.shuffle(order)
        turned = _transposed(builder, value, tuple(order))
        source = value if turned is None else turned
        order = list(range(len(shape))) if turned is None else order
    part = combiner(builder, source, prod(shape[i] for i in dims))
    if part is None:
        return None
    name, init, facts = part
    reduced_dims = tuple(i for i, dim in enumerate(order) if dim in dims)
    row = builder.one("reduce", (source, init), facts, dims=reduced_dims, combiners=(name,))
    if row is None:
        return None
    left = [dim for dim in order if dim in kept]
    known = builder.facts_of(row)
    wide = builder.one("broadcast_in_dim", (row,), known, shape=shape, dims=tuple(left))
    result = None if wide is None else combined(builder, value, wide)
    return _reduced_again(builder, result) if result is not None and random.random() < 0.5 else result


def _reduced_again(builder: Builder, value: int) -> int | None:
    shape = builder.type_of(value).shape
    dims = (builder.random.randrange(len(shape)),)
    part = combiner(builder, value, shape[dims[0]])
    if part is None:
        return value
    name, init, facts = part
    return builder.one("reduce", (value, init), facts, dims=dims, combiners=(name,))


def rolled(builder: Builder, value: int) -> int | None:
    """Slices of a value concatenated in another order: rolled, with a gap, or some elements twice."""
    random = builder.random
    shape = builder.type_of(value).shape
    axes = [i for i, size in enumerate(shape) if size > 1]
    if not axes:
        return None
    axis = random.choice(axes)
    size = shape[axis]
    cut = random.randint(1, size - 1)
    ends = random.choice(([(cut, size), (0, cut)], [(0, cut), (min(cut + 1, size - 1), size)], [(0, cut), (0, cut)]))
    parts = [_part(builder, value, axis, start, end) for start, end in ends]
    if any(part is None for part in parts):
        return None
    parts += [value] * (random.random() < 0.2)
    operands = [part for part in parts if part is not None]
    return builder.one("concatenate", operands, builder.facts_of(value), dimension=axis)


def interleaved(builder: Builder, value: int) -> int | None:
    """Elements of two values in turns: each padded between its elements, and combined."""
    type_, facts = builder.type_of(value), builder.facts_of(value)
    axes = [i for i, size in enumerate(type_.shape) if size > 0]
    if not axes or facts.special:
        return None
    axis = builder.random.choice(axes)
    other = builder.pick(lambda t, f: t == type_ and not f.special)
    zero = builder.constant(type_.dtype, (), Facts(0, 0, grid=0) if has_floats(type_.dtype) else Facts(0, 0))
    padded = []
    for position, each in enumerate((value, value if other is None else other)):
        amounts = {"low": (0, 1), "high": (1, 0)}
        params = {
            name: tuple(pair[position] if i == axis else 0 for i in range(len(type_.shape)))
            for name, pair in amounts.items()
        }
        inside = tuple(int(i == axis) for i in range(len(type_.shape)))
        known = join(type_.dtype, builder.facts_of(each), builder.facts_of(zero))
        padded.append(builder.one("pad", (each, zero), known, interior=inside, **params))
    first, second = padded
    return None if first is None or second is None else combined(builder, first, second)


def stacked(builder: Builder, value: int) -> int | None:
    """Values of one shape as rows of a new dimension, in front or at the end."""
    random = builder.random
    type_ = builder.type_of(value)
    front = random.random() < 0.6
    shape = (1, *type_.shape) if front else (*type_.shape, 1)
    rows, known = [], []
    for _ in range(random.choice((2, 2, 3, 4))):
        other = builder.pick(lambda t, f: t == type_)
        assert other is not None
        row = _reshaped(builder, other, shape)
        if row is None:
            return None
        rows.append(row)
        known.append(builder.facts_of(other))
    axis = 0 if front else len(type_.shape)
    return builder.one("concatenate", rows, join(type_.dtype, *known), dimension=axis)


def masked_triangle(builder: Builder, value: int) -> int | None:
    """A select by indices that are compared: a triangle, a diagonal, or the first rows."""
    random = builder.random
    type_ = builder.type_of(value)
    if not type_.shape:
        return None
    dtype = dtype_named("s32")
    first, second = (random.randrange(len(type_.shape)) for _ in range(2))
    facts = Facts(0, max(type_.shape))
    left = builder.one("iota", (), facts, shape=type_.shape, dtype=dtype, iota_dimension=first)
    if first == second or random.random() < 0.2:
        bound = builder.constant(dtype, (), Facts(0, max(type_.shape)))
        right = builder.one("broadcast_in_dim", (bound,), builder.facts_of(bound), shape=type_.shape, dims=())
    else:
        right = builder.one("iota", (), facts, shape=type_.shape, dtype=dtype, iota_dimension=second)
    if left is None or right is None:
        return None
    direction = random.choice(("LT", "LE", "GT", "GE", "EQ", "NE"))
    attributes = {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}
    mask = builder.one("compare", (left, right), Facts(0, 1), dtype=PRED, attributes=attributes)
    filler = builder.constant(type_.dtype, type_.shape)
    branches = [value, filler]
    random.shuffle(branches)
    known = join(type_.dtype, builder.facts_of(value), builder.facts_of(filler))
    return None if mask is None else builder.one("select", (mask, *branches), known)


def combined(builder: Builder, left: int, right: int) -> int | None:
    """Add an operation of two values of a type: a sum or a difference where one is exact enough, or an extremum."""
    dtype = builder.type_of(left).dtype
    known = [builder.facts_of(left), builder.facts_of(right)]
    if dtype == PRED:
        return builder.one("xor", (left, right), Facts(0, 1))
    name = builder.random.choice(("add", "subtract", "multiply"))
    facts = scalar_facts.operations_on(dtype)[name][1](dtype, known)
    if facts is not None:
        return builder.one(name, (left, right), facts)
    return None if dtype in COMPLEX else builder.one("maximum", (left, right), computed(join(dtype, *known)))


def _part(builder: Builder, value: int, axis: int, start: int, end: int) -> int | None:
    shape = builder.type_of(value).shape
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(end if i == axis else size for i, size in enumerate(shape))
    strides = (1,) * len(shape)
    return builder.one("slice", (value,), builder.facts_of(value), starts=starts, limits=limits, strides=strides)


def _reshaped(builder: Builder, value: int, shape: Shape) -> int | None:
    return builder.one("reshape", (value,), builder.facts_of(value), shape=shape)


def _transposed(builder: Builder, value: int, dims: Shape) -> int | None:
    return builder.one("transpose", (value,), builder.facts_of(value), dims=dims)
