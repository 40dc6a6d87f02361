"""Plans edited by a person give the right results or are refused with the reason."""

import random
from dataclasses import fields

import jax.numpy as jnp
import pytest

import xgpu
from xgpu import ir
from xgpu.dialects.attributes import HERO
from xgpu.emit.family_table import FAMILIES

from .emitters import emitter_of
from .plans import PROGRAMS, plan_of

SCATTERS = ("scatter", "scatter_sorted", "scatter_shared", "scatter_ordered")


@pytest.mark.parametrize("emitter", PROGRAMS)
def test_every_other_emitter(emitter: str) -> None:
    """A loop makes all but loops and updates; the rest fit one another only where the heroes do."""
    plan = plan_of(emitter)
    fits = {name for name in FAMILIES if plan.right_or_refused(plan.with_attribute("xgpu.emitter", f'"{name}"'))}
    assert emitter in fits
    others = {
        "concatenate": {"loop", "concatenate_tiled"},
        "concatenate_tiled": {"loop", "concatenate"},
        "scatter": {*SCATTERS},
        "scatter_shared": {*SCATTERS},
        "reduce_row": {"loop", "rows"},
        "rows": {"loop", "reduce_row"},
        "reduce_column": {"loop", "columns"},
        "columns": {"loop", "reduce_column"},
        "update_slice": {"loop"},
        "product": {"warp_product"},
    }
    assert fits - {emitter} <= {"loop", *others.get(emitter, ())}


@pytest.mark.parametrize("emitter", PROGRAMS)
def test_other_heroes(emitter: str) -> None:
    """Operations of a fusion become heroes in turn, or are none any more."""
    plan = plan_of(emitter)
    context = ir.make_context()
    module = ir.Module.parse(plan.text, context)
    *_, function, _ = module.body.operations
    *operations, _ = function.operation.regions[0].blocks[0].operations
    with context:
        for op in operations[-6:]:
            was_hero = HERO in op.operation.attributes
            if was_hero:
                del op.operation.attributes[HERO]
            else:
                op.operation.attributes[HERO] = ir.UnitAttr.get()
            plan.right_or_refused(str(module))
            if was_hero:
                op.operation.attributes[HERO] = ir.UnitAttr.get()
            else:
                del op.operation.attributes[HERO]


@pytest.mark.parametrize("emitter", PROGRAMS)
@pytest.mark.parametrize("numbers", ["", ": 0", ": -1", ": 1, -1", ": 7"])
def test_other_aliases(emitter: str, numbers: str) -> None:
    plan = plan_of(emitter)
    plan.right_or_refused(plan.with_attribute("xgpu.aliases", f"array<i64{numbers}>"))


def _values(emitter: str) -> dict[str, list[str]]:
    """Return values of each number of a schedule, most of them small, and some that no kernel has."""
    found = {}
    for each in fields(FAMILIES[emitter].schedule):
        allowed = each.metadata.get("range")
        if allowed is None:
            found[each.name] = ["true", "false", "false", "1"]
        else:
            some = (1, 2, 4, 8, 16, 32, 64, 128, 256, 3, 5, 12, 96, 1024)
            found[each.name] = [str(value) for value in some if value in allowed] + ["0", "-1", "100000000", "true"]
    return found


@pytest.mark.parametrize("emitter", PROGRAMS)
def test_other_schedules(emitter: str) -> None:
    """Numbers of schedules do not change results, one by one and several at a time."""
    plan, values = plan_of(emitter), _values(emitter)
    generator, compiled = random.Random(emitter), 0
    for _ in range(60):
        if compiled == 5:
            return
        changed = dict(plan.schedule)
        for name in generator.sample(list(values), generator.randint(1, min(3, len(values)))):
            changed[name] = generator.choice(values[name])
        text = plan.with_schedule(", ".join(f"{name} = {value}" for name, value in changed.items()))
        if (program := plan.right_or_refused(text, sanitize=True)) is not None:
            compiled += 1
            if emitter not in COLLECTED:
                maps_are_exact(program)
    pytest.fail(f"only {compiled} of these schedules are taken")


COLLECTED = ("concatenate", "concatenate_tiled", "scatter", "scatter_shared", "update_slice")
"""Emitters of which several maps make an output together, or none is known before the program runs."""


def maps_are_exact(program: xgpu.Compiled) -> None:
    """Each element of an output is written by one thread at one step, told from the maps alone."""
    emitter = emitter_of(program, len(program.kernels) - 1)
    launch = program.launches[-1]
    for number, output in enumerate(launch.outputs):
        map_, shape = emitter.thread_to_output(number), program.values[output].shape
        exact = map_.is_bijection(shape)
        assert map_.coverage(shape).is_exact if exact is None else exact


@pytest.mark.parametrize(
    ("emitter", "schedule", "message"),
    [
        ("loop", "threads = 128, vector = 3, rows = 1", "vector = 3: expected a power of two up to 64"),
        ("loop", "threads = 0", "threads = 0: expected a number from 1 to 1024"),
        ("loop", "rows = 3", "rows = 3: expected 1, unless they divide 38 rows, and vector 64 columns"),
        ("loop", "row = 7", "row = 7: expected one of 2432, 64, 1"),
        ("loop", "vector = 2, rows = 2, row = 1", "rows = 2: expected 1, unless they divide 2432 rows, and vector 1"),
        ("loop", "lanes = 4", "unknown number 'lanes' of its schedule; expected one of threads, vector, rows, row"),
        ("loop", "thread = 4", "unknown number 'thread' of its schedule (did you mean 'threads'?); expected"),
        ("reduce_row", "aligned = 1", "aligned = 1: expected true or false"),
        (
            "reduce_row",
            "lanes = 1024, groups = 2",
            "groups = 2: expected a block of whole warps of 32 and at most 1024 threads, not",
        ),
        ("reduce_column", "vector = 8", "vector = 8: expected a divisor of the 36 columns"),
        ("scan_row", "vector = 8", "vector = 8: expected a divisor of 300 elements"),
        ("transpose", "side = 8", "expected a side of whole runs"),
        ("concatenate_tiled", "pitch = 7", "pitch = 7: expected the 8 elements of a row, or more"),
        ("recurrence", "together = 14", "together = 14: expected no more than the loop's 13 iterations"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(emitter: str, schedule: str, message: str) -> None:
    plan = plan_of(emitter)
    with pytest.raises(xgpu.InvalidInput) as caught:
        xgpu.compile(plan.with_schedule(schedule))
    assert message in caught.value.message
    assert f"of emitter '{emitter}'" in caught.value.message


@pytest.mark.parametrize("emitter", ["reduce_row", "loop"])
def test_sums_start_from_their_own_type(emitter: str) -> None:
    """The frontend sees to it for programs; a plan must have it so."""
    text = plan_of("reduce_row").with_attribute("xgpu.emitter", f'"{emitter}"')
    narrow = text.replace("0.000000e+00> : tensor<f32>", "0.000000e+00> : tensor<f16>").replace(
        "130xf32>, tensor<f32>)", "130xf32>, tensor<f16>)"
    )
    assert narrow != text
    with pytest.raises(xgpu.InvalidInput, match="it combines elements of different types, f16 and f32"):
        xgpu.compile(narrow)


def test_what_is_left_out_is_chosen() -> None:
    plan = plan_of("loop")
    assert xgpu.compile(plan.with_schedule("")).ir("fusions") == plan.text
    edited = xgpu.compile(plan.with_schedule("vector = 2"))
    assert "#xgpu.schedule<threads = 128, vector = 2, rows = 1, row = 64>" in edited.ir("fusions")
    assert edited.kernels[-1].grid == (38 * 64 // 256 + 1, 1, 1)


def test_a_schedule_is_fixed_from_python() -> None:
    function, specs = PROGRAMS["loop"]
    name = xgpu.compile(function, *specs).kernels[0].name
    program = xgpu.compile(function, *specs, options=xgpu.Options(schedules={name: {"threads": 64, "vector": 4}}))
    assert "#xgpu.schedule<threads = 64, vector = 4, rows = 1, row = 64>" in program.ir("fusions")
    assert program.kernels[0].block == (64, 1, 1)
    with pytest.raises(
        xgpu.InvalidInput, match=f"option schedules: there is no fusion 'nothing'; the fusions are: {name}"
    ):
        xgpu.compile(function, *specs, options=xgpu.Options(schedules={"nothing": {}}))
    with pytest.raises(xgpu.InvalidInput, match="vector = 3: expected a power of two"):
        xgpu.compile(function, *specs, options=xgpu.Options(schedules={name: {"vector": 3}}))


def test_equal_fusions_share_a_schedule() -> None:
    program = xgpu.compile(lambda x: jnp.cumsum(jnp.cumsum(x, 1), 1), "f32[5,300]")
    assert program.ir("fusions").count("#xgpu.schedule<") == len(program.kernels) == 1
    assert len(program.launches) == 2
