"""Random well-typed graphs, the same for the same seed."""

from collections.abc import Callable
from dataclasses import replace

from xgpu.tools.fuzzing import movement, reductions, scalar_facts
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import (
    ALL,
    COMPLEX,
    FLOATS,
    PACKED,
    PRED,
    SMALL_FLOATS,
    Facts,
    computed,
    has_known_bits,
    integer_range,
    join,
)
from xgpu.tools.fuzzing.families import (
    convolutions,
    functions,
    numbers,
    operations,
    patterns,
    places,
    recursive_scans,
    selections,
    several,
    solves,
)
from xgpu.tools.fuzzing.graph import Graph
from xgpu.tools.fuzzing.operands import companion

Step = Callable[[Builder, int], int | None]
"""Adds operations that use a value and returns the last one's result, or None if nothing was added."""


def generate(seed: int) -> Graph:
    """Return the graph of a seed: some 5 to 25 steps, of an operation or a few each, and up to five outputs."""
    builder = Builder(seed, limit=2_000)
    random = builder.random
    size = random.random()
    if size > 0.9:
        builder.limit = 1_500_000
    elif size > 0.5:
        builder.limit = 40_000
    for _ in range(random.randint(1, 3)):
        builder.argument(builder.dtype(), builder.shape())
    if builder.limit > 1_000_000:
        _add_large(builder)
    wanted, made, attempts = random.randint(5, 22), 0, 0
    while made < wanted and attempts < 200:
        attempts += 1
        value = builder.pick(lambda type_, facts: type_.size > 0 or random.random() < 0.1)
        if value is None:
            value = builder.argument(builder.dtype(), builder.shape())
        (step,) = random.choices(list(STEPS), list(STEPS.values()))
        made += step(builder, value) is not None
    return _with_outputs(builder)


def _add_large(builder: Builder) -> None:
    """Add an argument large enough that a thread computes several elements."""
    minor = builder.random.choice((1, 3, 7, 8, 16, 31, 64, 127, 128, 129))
    major = builder.random.randint(300_000, 400_000) // minor
    if builder.random.random() < 0.5:
        major = major // 16 * 16
    shape = builder.random.choice(((major, minor), (minor, major), (major * minor,), (1, major, minor)))
    builder.argument(builder.dtype(), shape)


def _with_outputs(builder: Builder) -> Graph:
    """Choose outputs, those that need the most operations more often: up to five, or more that nothing else takes."""
    random = builder.random
    results = [value for node in builder.nodes if node.op not in ("argument", "constant") for value in node.results]
    if not results:
        return builder.graph([0])
    by_size = sorted(results, key=lambda value: len(builder.graph([value]).nodes))
    outputs = [by_size[-1]]
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        outputs.append(max(random.choices(by_size, k=3), key=by_size.index))
    if random.random() < 0.5:
        # A result of the shape of another shares a kernel with it.
        shape = builder.type_of(outputs[0]).shape
        outputs.append(random.choice([value for value in results if builder.type_of(value).shape == shape]))
    if random.random() < 0.4:
        taken = {operand for node in builder.nodes for operand in node.operands}
        unused = [value for value in results if value not in taken]
        outputs += random.sample(unused, min(5, len(unused)))
    return builder.graph(outputs)


def _elementwise(builder: Builder, value: int) -> int | None:
    dtype = builder.type_of(value).dtype
    table = scalar_facts.operations_on(dtype)
    names = [name for name in table if not (dtype.is_unsigned and name in scalar_facts.UNSIGNED_REFUSED)]
    for name in builder.random.sample(names, min(4, len(names))):
        count, rule = table[name]
        if name == "clamp":
            return _clamp(builder, value)
        operands = [value, *(companion(builder, value) for _ in range(count - 1))]
        builder.random.shuffle(operands)
        if name in ("divide", "remainder") and dtype.is_integer and not _may_divide(builder, *operands):
            operands[1] = builder.argument(dtype, builder.type_of(value).shape, Facts(1, integer_range(dtype)[1]))
        facts = rule(dtype, [builder.facts_of(operand) for operand in operands])
        if facts is not None:
            return builder.one(name, operands, facts)
    return None


def _may_divide(builder: Builder, dividend: int, divisor: int) -> bool:
    """Whether integers may be divided: of a zero divisor, XLA makes x / x 1 and 0 / x 0 where it sees that."""
    made = {result: node for node in builder.nodes for result in node.results}
    pending, seen = [divisor], {divisor}
    while pending:
        operands = set(made[pending.pop()].operands) - seen
        seen |= operands
        pending += operands
    is_apart = made[dividend].op == "argument" and dividend not in seen
    return is_apart or builder.facts_of(divisor).lo > 0


def _function(builder: Builder, value: int) -> int | None:
    """A function of floats, of new arguments in its domain if the value is not known to be in it."""
    type_ = builder.type_of(value)
    if not type_.dtype.is_float:
        return None
    name = builder.random.choice([name for name in scalar_facts.FLOAT_OPS if name != "clamp"])
    count, rule = scalar_facts.FLOAT_OPS[name]
    operands = [value, *(companion(builder, value) for _ in range(count - 1))]
    facts = rule(type_.dtype, [builder.facts_of(operand) for operand in operands])
    if facts is None:
        domain = Facts(2.0**-6, 1.5, 2.0**-6, nonzero=True, pristine=True)
        operands = [builder.argument(type_.dtype, type_.shape, domain) for _ in range(count)]
        facts = rule(type_.dtype, [domain] * count)
    return None if facts is None else builder.one(name, operands, facts)


def _clamp(builder: Builder, value: int) -> int | None:
    dtype = builder.type_of(value).dtype
    if builder.random.random() < 0.5:
        bounds = [companion(builder, value), companion(builder, value)]
    else:
        bounds = [builder.scalar(dtype, builder.fresh_facts(dtype)) for _ in range(2)]
    shape = builder.type_of(value).shape
    scalars = tuple(2 * i for i in range(2) if builder.type_of(bounds[i]).shape != shape)
    operands = (bounds[0], value, bounds[1])
    facts = computed(join(dtype, *(builder.facts_of(operand) for operand in operands)))
    return builder.one("clamp", operands, facts, main=1, scalars=scalars)


def _convert(builder: Builder, value: int) -> int | None:
    source = builder.type_of(value).dtype
    targets = FLOATS if source.is_integer and builder.random.random() < 0.5 else (*ALL, *PACKED, *SMALL_FLOATS)
    targets = COMPLEX if source in COMPLEX else (*targets, COMPLEX[0])
    for target in builder.random.sample(targets, min(3, len(targets))):
        facts = scalar_facts.converted(source, target, builder.facts_of(value))
        if facts is not None:
            return builder.one("convert", (value,), replace(facts, pristine=False), dtype=target)
    return None


def _compare(builder: Builder, value: int) -> int | None:
    type_, facts = builder.values[value].type, builder.facts_of(value)
    other = companion(builder, value)
    if not (facts.exact and builder.facts_of(other).exact):
        return None
    directions = ("EQ", "NE", "LT", "LE", "GT", "GE")
    direction = builder.random.choice(directions[:2] if type_.dtype in COMPLEX else directions)
    attributes = {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}
    pristine = facts.pristine and builder.facts_of(other).pristine
    if type_.dtype.is_float and pristine and builder.random.random() < 0.3:
        attributes["compare_type"] = "#stablehlo<comparison_type TOTALORDER>"
    return builder.one("compare", (value, other), Facts(0, 1), dtype=PRED, attributes=attributes)


def _select(builder: Builder, value: int) -> int | None:
    type_ = builder.type_of(value)
    scalar = builder.random.random() < 0.2
    shape = () if scalar else type_.shape
    condition = builder.pick(lambda t, f: t.dtype == PRED and t.shape == shape)
    if condition is None:
        condition = builder.argument(PRED, shape)
    branches = [value, companion(builder, value)]
    builder.random.shuffle(branches)
    facts = join(type_.dtype, *(builder.facts_of(branch) for branch in branches))
    scalars = (0,) if shape != type_.shape else ()
    return builder.one("select", (condition, *branches), facts, main=1, scalars=scalars)


def _bits(builder: Builder, value: int) -> int | None:
    """Operations on the bits of floats: classification, reinterpretation, rounding to fewer bits."""
    type_, facts = builder.values[value].type, builder.facts_of(value)
    chance = builder.random.random()
    if type_.dtype.is_float and chance < 0.4:
        return builder.one("is_finite", (value,), Facts(0, 1), dtype=PRED)
    if type_.dtype.is_float and chance < 0.6 and facts.exact and facts.magnitude < 200 and facts.smallest > 2**-9:
        mantissa = builder.random.randint(1, 10)
        attributes = {"exponent_bits": f"{builder.random.randint(5, 8)} : i32", "mantissa_bits": f"{mantissa} : i32"}
        rounded = replace(computed(facts), lo=facts.lo * 2, hi=facts.hi * 2, grid=None)
        return builder.one("reduce_precision", (value,), rounded, attributes=attributes)
    same_width = [d for d in ALL if d.bits == type_.dtype.bits and not d.is_float and d != type_.dtype]
    if not same_width or not has_known_bits(type_.dtype, facts) or type_.dtype in (PRED, *COMPLEX):
        return None
    target = builder.random.choice(same_width)
    lowest, highest = integer_range(target)
    return builder.one("bitcast_convert", (value,), Facts(lowest, highest, pristine=True), dtype=target)


STEPS: dict[Step, float] = {
    _elementwise: 8,
    _function: 3,
    _convert: 2,
    _compare: 1.5,
    _select: 2,
    _bits: 0.7,
    movement.broadcast: 1.5,
    movement.reshape: 2,
    movement.transpose: 2,
    movement.slice_: 2,
    movement.reverse: 1,
    movement.pad: 2,
    movement.concatenate: 2,
    movement.gather: 2,
    movement.dynamic_slice: 1.5,
    movement.dynamic_update_slice: 1.5,
    movement.combine_shifted: 2,
    reductions.reduce: 1.5,
    reductions.reduce_several: 0.5,
    operations.reduce_window: 0.7,
    operations.prefixes: 0.5,
    operations.scatter: 0.8,
    operations.dot_general: 1.2,
    operations.sort: 0.9,
    operations.scan: 0.4,
    numbers.extremes: 0.8,
    numbers.integer_edges: 0.4,
    numbers.complex_parts: 1.5,
    selections.branches: 0.6,
    selections.select_and_scatter: 0.6,
    selections.random_bits: 0.2,
    recursive_scans.recursive_scan: 0.3,
    convolutions.convolution: 1,
    functions.own_function: 0.5,
    functions.complex_function: 0.3,
    functions.other_width: 0.6,
    functions.mapped: 0.3,
    places.ordered_scatter: 0.6,
    places.ordered_gather: 0.3,
    places.set_to_one_number: 0.4,
    places.updates_in_turn: 0.8,
    several.joint_reduction: 0.7,
    several.whiles: 1,
    several.barrier: 0.3,
    several.largest: 0.2,
    solves.triangular_system: 0.3,
    solves.cholesky: 0.2,
    patterns.split_transposed: 1.2,
    patterns.by_statistics: 1.2,
    patterns.rolled: 0.6,
    patterns.interleaved: 0.4,
    patterns.stacked: 0.5,
    patterns.masked_triangle: 0.5,
}
"""The operations that graphs are made of, with the frequency of each."""
