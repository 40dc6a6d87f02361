"""Random convolutions of any numbers of dimensions, groups, paddings, strides and dilations."""

from math import prod

from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import PRED
from xgpu.tools.fuzzing.families.operations import sum_of_products
from xgpu.tools.fuzzing.operands import value_of_type
from xgpu.tools.fuzzing.ops import TensorType


def convolution(builder: Builder, value: int) -> int | None:
    """A convolution whose sums are exact, with its dimensions in any order."""
    random = builder.random
    type_, facts = builder.type_of(value), builder.facts_of(value)
    rank = len(type_.shape)
    if not 2 <= rank <= 5 or type_.dtype == PRED or not type_.size or not facts.exact or facts.special:
        return None
    names = ["b", "f", *map(str, range(rank - 2))]
    left = random.sample(names, rank)
    sizes = dict(zip(left, type_.shape, strict=True))
    groups, batches = _groups(builder, sizes["f"], sizes["b"])
    outputs = groups * batches * random.choice((1, 1, 2, 3))
    spatial = {name: random.choice((1, 2, 3, 3, min(7, sizes[name]))) for name in names[2:]}
    windows = {"i": sizes["f"] // groups, "o": outputs, **spatial}
    right = random.sample(["i", "o", *names[2:]], rank)
    kernel = value_of_type(builder, TensorType(type_.dtype, tuple(windows[name] for name in right)), value)
    window = tuple(spatial.values())
    numbers = {
        "low": tuple(random.choice((0, 0, 1, 2, -1, extent - 1)) for extent in window),
        "high": tuple(random.choice((0, 0, 1, 2, extent - 1)) for extent in window),
        "strides": tuple(random.choice((1, 1, 1, 2, 3)) for _ in window),
        "apart": tuple(random.choice((1, 1, 1, 2)) for _ in window),
        "dilations": tuple(random.choice((1, 1, 1, 2)) for _ in window),
        "reversal": tuple(random.random() < 0.2 for _ in window),
    }
    made = sum_of_products(builder, value, kernel, prod(window) * windows["i"])
    if made is None:
        return None
    dtype, known = made
    params = {"left": tuple(left), "right": tuple(right), "made": tuple(random.sample(names, rank))}
    counts = {"groups": groups, "batches": batches, "window": window, "features": windows["i"]}
    return builder.one("convolution", (value, kernel), known, dtype=dtype, **params, **counts, **numbers)


def _groups(builder: Builder, features: int, batch: int) -> tuple[int, int]:
    """Return the numbers of groups of features, and of the batch: one of them is 1."""
    of_features, of_batch = (
        builder.random.choice([each for each in range(1, size + 1) if size % each == 0]) for size in (features, batch)
    )
    chance = builder.random.random()
    return (of_features, 1) if chance < 0.4 else (1, of_batch) if chance < 0.6 else (1, 1)
