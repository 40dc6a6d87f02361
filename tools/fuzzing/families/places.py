"""Random updates and reads at places that are in order or differ, updates of one number, and updates in turn."""

from math import prod

from xgpu.dtypes import dtype_named
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import Facts, join
from xgpu.tools.fuzzing.families.patterns import combined
from xgpu.tools.fuzzing.movement import gather_indices, starts_of
from xgpu.tools.fuzzing.operands import value_of_type
from xgpu.tools.fuzzing.ops import Shape, TensorType


def ordered_scatter(builder: Builder, value: int) -> int | None:
    """Rows written at places that differ, in order or backwards, some of them outside the range."""
    random = builder.random
    type_ = builder.type_of(value)
    made = _places(builder, type_.shape)
    if made is None:
        return None
    axis, indices, is_sorted = made
    count = builder.type_of(indices).shape[0]
    rest = tuple(size for i, size in enumerate(type_.shape) if i != axis)
    updates = value_of_type(builder, TensorType(type_.dtype, (count, *rest)))
    facts = join(type_.dtype, builder.facts_of(value), builder.facts_of(updates))
    params = {"offsets": tuple(range(1, len(rest) + 1)), "inserted": (axis,), "start_map": (axis,)}
    flags = {"unique": random.random() < 0.8, "sorted": is_sorted}
    return builder.one("scatter", (value, indices, updates), facts, combiners=("second",), **params, **flags, **_PLAIN)


_PLAIN = {"batching": (), "indices_batching": (), "vector_dim": 1}


def ordered_gather(builder: Builder, value: int) -> int | None:
    """Rows read at places in order or backwards, some of them outside the range."""
    shape = builder.type_of(value).shape
    made = _places(builder, shape)
    if made is None:
        return None
    axis, indices, is_sorted = made
    sizes = tuple(1 if i == axis else size for i, size in enumerate(shape))
    params = {"offsets": tuple(range(1, len(shape))), "collapsed": (axis,), "start_map": (axis,), "sizes": sizes}
    return builder.one("gather", (value, indices), builder.facts_of(value), sorted=is_sorted, **params, **_PLAIN)


def _places(builder: Builder, shape: Shape) -> tuple[int, int, bool] | None:
    """Return a dimension, places along it that differ, one in a row, and whether they increase."""
    random = builder.random
    if not prod(shape) or not shape:
        return None
    axis, dtype = random.randrange(len(shape)), dtype_named(random.choice(("s32", "s64", "s16")))
    if shape[axis] > 10_000:
        return None
    count = random.randint(1, shape[axis] + 2)
    facts = Facts(0, 3 * count + shape[axis])
    places = builder.one("iota", (), facts, shape=(count, 1), dtype=dtype, iota_dimension=0)
    is_sorted = random.random() < 0.6
    if places is not None and not is_sorted:
        places = builder.one("reverse", (places,), facts, dims=(0,))
    for name, most in (("multiply", 3), ("add", max(0, shape[axis] - count))):
        if places is not None and random.random() < 0.6:
            number = builder.constant(dtype, (), Facts(1, most) if name == "multiply" else Facts(-1, most))
            wide = builder.one("broadcast_in_dim", (number,), builder.facts_of(number), shape=(count, 1), dims=())
            places = None if wide is None else builder.one(name, (places, wide), facts)
    return None if places is None else (axis, places, is_sorted)


def set_to_one_number(builder: Builder, value: int) -> int | None:
    """One number written to many places, of which several may be the same."""
    random = builder.random
    type_ = builder.type_of(value)
    if not type_.shape:
        return None
    batch = tuple(random.choice((1, 2, 5, 17, 40)) for _ in range(random.choice((1, 1, 2))))
    dims = random.sample(range(len(type_.shape)), random.randint(1, len(type_.shape)))
    rest = tuple(size for i, size in enumerate(type_.shape) if i not in dims)
    number = builder.scalar(type_.dtype, builder.fresh_facts(type_.dtype))
    known = builder.facts_of(number)
    updates = builder.one("broadcast_in_dim", (number,), known, shape=(*batch, *rest), dims=())
    if updates is None:
        return None
    indices = gather_indices(builder, (*batch, len(dims)), max(type_.shape[i] for i in dims))
    params = {
        "offsets": tuple(range(len(batch), len(batch) + len(rest))),
        "inserted": tuple(sorted(dims)),
        "batching": (),
        "indices_batching": (),
        "start_map": tuple(dims),
        "vector_dim": len(batch),
    }
    facts = join(type_.dtype, builder.facts_of(value), known)
    return builder.one("scatter", (value, indices, updates), facts, combiners=("second",), **params)


def updates_in_turn(builder: Builder, value: int) -> int | None:
    """An array updated two or three times with parts of what it was, and perhaps combined with what it was."""
    random = builder.random
    type_, facts = builder.type_of(value), builder.facts_of(value)
    if not type_.shape or not type_.size:
        return None
    made = [value]
    for _ in range(random.choice((2, 2, 3))):
        sizes = tuple(random.choice((1, size, random.randint(1, size))) for size in type_.shape)
        source = random.choice(made)
        part = builder.one("dynamic_slice", (source, *starts_of(builder, type_.shape)), facts, sizes=sizes)
        if part is None:
            return None
        operands = (made[-1], part, *starts_of(builder, type_.shape))
        updated = builder.one("dynamic_update_slice", operands, facts)
        if updated is None:
            return None
        made.append(updated)
    return combined(builder, random.choice(made[:-1]), made[-1]) if random.random() < 0.6 else made[-1]
