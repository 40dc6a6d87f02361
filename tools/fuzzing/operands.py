"""Finds or makes a second operand for an operation: another value of a given one's type."""

from dataclasses import replace

from xgpu.tools.fuzzing import scalar_facts
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import join
from xgpu.tools.fuzzing.ops import Shape, TensorType


def companion(builder: Builder, value: int) -> int:
    """Return another value of the same type: one of the graph's, one adapted to the type, or a new leaf."""
    return value_of_type(builder, builder.type_of(value), value)


def value_of_type(builder: Builder, type_: TensorType, value: int | None = None) -> int:
    """Return a value of a type, as `companion` does: seldom ``value`` itself."""
    random = builder.random
    chance = random.random()
    if chance < 0.35:
        found = builder.pick(lambda t, f: t == type_)
        if found is not None and (found != value or chance < 0.05):
            return found
    if chance < 0.75:
        found = builder.pick(lambda t, f: t.shape == type_.shape and t.dtype != type_.dtype and random.random() < 0.3)
        found = builder.pick(lambda t, f: t.size > 0) if found is None else found
        made = None if found is None else _adapted(builder, found, type_)
        if made is not None:
            return made
    if chance < 0.85:
        return builder.constant(type_.dtype, type_.shape)
    if chance < 0.9:
        return builder.iota(type_.dtype, type_.shape)
    return builder.argument(type_.dtype, type_.shape)


def _adapted(builder: Builder, value: int, type_: TensorType) -> int | None:
    """Return ``value`` brought to a type, or None."""
    source = builder.type_of(value)
    if source.dtype != type_.dtype:
        facts = scalar_facts.converted(source.dtype, type_.dtype, builder.facts_of(value))
        if facts is None:
            return None
        converted = builder.one("convert", (value,), replace(facts, pristine=False), dtype=type_.dtype)
        if converted is None:
            return None
        value = converted
    if source.shape == type_.shape:
        return value
    if source.size == type_.size:
        return builder.one("reshape", (value,), builder.facts_of(value), shape=type_.shape)
    dims = _broadcast_dims(source.shape, type_.shape)
    if dims is not None:
        return builder.one("broadcast_in_dim", (value,), builder.facts_of(value), shape=type_.shape, dims=dims)
    return _padded(builder, value, type_) if len(source.shape) == len(type_.shape) else None


def _broadcast_dims(source: Shape, target: Shape) -> Shape | None:
    """Return to which dimensions those of ``source`` can be broadcast, in order, or None."""
    dims: list[int] = []
    for size in source:
        following = range(dims[-1] + 1 if dims else 0, len(target))
        fitting = [i for i in following if size in (1, target[i])]
        if not fitting:
            return None
        dims.append(fitting[0])
    return tuple(dims)


def _padded(builder: Builder, value: int, type_: TensorType) -> int | None:
    """Return ``value`` padded, or cut by negative padding, to a shape of its rank."""
    filler = builder.scalar(type_.dtype, builder.fresh_facts(type_.dtype))
    facts = join(type_.dtype, builder.facts_of(value), builder.facts_of(filler))
    missing = [target - size for size, target in zip(builder.type_of(value).shape, type_.shape, strict=True)]
    low = tuple(builder.random.randint(min(0, size), max(0, size)) for size in missing)
    high = tuple(size - before for size, before in zip(missing, low, strict=True))
    return builder.one("pad", (value, filler), facts, low=low, high=high, interior=(0,) * len(low))
