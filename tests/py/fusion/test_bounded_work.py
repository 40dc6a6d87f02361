"""The work of plans: bounded, as much for each step of a program however many it has, and what kernels then execute.

The families are chains of n steps, of which each reads the one before at several indices or through several users: what
is computed again for each of them doubles with every step. Steps make no difference larger: results can be compared.
"""

import math

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from tests.py.fusion.planning_effort import calls_to_plan
from xgpu.driver.compiler import plan_program
from xgpu.dtypes import parse_spec
from xgpu.frontend.load import load_source
from xgpu.runtime.compare import compare
from xgpu.tools.functions.simulated import simulated
from xgpu.tools.functions.written import written
from xgpu.tools.fuzzing.generate import generate
from xgpu.tools.programs import GROUPS
from xgpu.tools.work import planned_operations, work_of

VECTOR, MATRIX, KEY = "f32[48]", "f32[8,8]", "u32[2]"


def _rolls(x):
    return x + 0.1 * (jnp.roll(x, 1, 0) - 2 * x + jnp.roll(x, -1, 0))


def _reversals(x):
    return jnp.sin(x) * 1.01 + x[::-1] * 0.1


def _updates(x):
    return x.at[1:-1].add(0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]))


def _pads(x):
    padded = jnp.pad(x, 1, mode="edge")
    return x + 0.1 * (padded[2:] - 2 * x + padded[:-2])


def _slices(x):
    return jnp.concatenate([x[2:], x[:2]]) * 0.5 + jnp.concatenate([x[-3:], x[:-3]]) * 0.5


def _transpositions(x):
    return jnp.sin(x) * 0.5 + x.T * 0.3


def _windows(x):
    return lax.reduce_window(jnp.sin(x) * 0.1, 0.0, lax.add, (3, 3), (1, 1), "SAME")


def _gathers(x, i):
    return jnp.sin(x[i]) + x * 0.5


def _concatenations(x):
    first, second = jnp.split(x, 2)
    return jnp.concatenate([jnp.sin(first) * 0.5 + second * 0.3, jnp.cos(second) * 0.5 + first * 0.3])


def _chain(step):
    def of_length(n):
        def function(x, *others):
            for _ in range(n):
                x = step(x, *others)
            return x

        return function

    return of_length


def _derivations(n):
    def function(key):
        for i in range(n):
            key = jax.random.fold_in(key, i)
        return jax.random.normal(key, (100,))

    return function


def _splits(n):
    def function(key):
        for i in range(n):
            key, drawn = jax.random.split(jax.random.fold_in(key, i))
        return jax.random.uniform(drawn, (100,)) + jax.random.uniform(key, (100,))

    return function


FAMILIES = {
    "rolls": (_chain(_rolls), (VECTOR,)),
    "reversals": (_chain(_reversals), (VECTOR,)),
    "updates": (_chain(_updates), (VECTOR,)),
    "pads": (_chain(_pads), (VECTOR,)),
    "slices": (_chain(_slices), (VECTOR,)),
    "transpositions": (_chain(_transpositions), (MATRIX,)),
    "windows": (_chain(_windows), (MATRIX,)),
    "gathers": (_chain(_gathers), (VECTOR, "s32[48]")),
    "concatenations": (_chain(_concatenations), (VECTOR,)),
    "derivations": (_derivations, (KEY,)),
    "splits": (_splits, (KEY,)),
}
each_family = pytest.mark.parametrize(("of_length", "specs"), FAMILIES.values(), ids=FAMILIES)


def test_lanes_of_a_warp_that_alternate_count_as_all():
    """Elements of even and odd indices have gradients of their own at each level of a prefix: a warp computes both."""
    for n in (1000, 10007):
        source = load_source(jax.grad(lambda x: lax.cumlogsumexp(x).sum()), (f"f32[{n}]",))
        work = work_of(source.module, plan_program(source.module)["fusions"])
        assert work.planned <= 6 * work.least


def test_reading_what_is_stored_does_not_make_it_cheap():
    """A step over a padded grid that is stored is short; the grid itself, which takes the step before, is not."""
    function, specs = simulated()["multigrid cycles in three dimensions"]
    source = load_source(function, specs)
    work = work_of(source.module, plan_program(source.module)["fusions"])
    assert work.planned <= 5 * work.least


def test_rows_wait_for_what_others_store():
    """Steps of a product along the rows, found one from the other, are not computed again for a sum of each row."""
    function, specs = simulated()["Gaussian splats, gradient"]
    source = load_source(function, specs)
    work = work_of(source.module, plan_program(source.module)["fusions"])
    assert work.planned <= 2 * work.least


@each_family
def test_plans_grow_with_their_programs(of_length, specs):
    """Four times the steps are at most so many times the kernels; what is computed again is soon as much as pays."""
    few, many = _lengths(specs)
    sources = [load_source(of_length(n), specs) for n in (few, many)]
    plans = [plan_program(source.module)["fusions"] for source in sources]
    launches = [len(planned_operations(each)) for each in plans]
    assert launches[1] <= 4 * launches[0] + 2
    works = [work_of(source.module, each) for source, each in zip(sources, plans, strict=True)]
    for work in works:
        assert 0 < work.planned <= work.bound
    assert works[1].planned / works[1].least <= 3 * works[0].planned / works[0].least


def _lengths(specs) -> tuple[int, int]:
    """Return two numbers of steps to compare; those that derive keys have 150 operations each."""
    return (4, 16) if specs == (KEY,) else (16, 64)


@each_family
def test_planning_takes_linear_time(of_length, specs):
    """From 16 steps to 64, 450 calls for an operation would be 1800 if the time were quadratic."""
    for n in _lengths(specs):
        source = load_source(of_length(n), specs)
        assert calls_to_plan(source) <= 1200 * str(source.module).count("stablehlo.")


def _runs():
    """Yield families and numbers of steps to run: in some, what XLA's program for the CPU takes is exponential."""
    for name, (of_length, specs) in FAMILIES.items():
        for n in (1, 4) if specs == (KEY,) else (1, 4, 16):
            yield pytest.param(of_length, specs, n, id=f"{name}-{n}")


@pytest.mark.parametrize(("of_length", "specs", "n"), list(_runs()))
def test_kernels_execute_what_was_estimated(of_length, specs, n):
    compiled = xgpu.compile(of_length(n), *specs)
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        assert compare(result, expected).agrees
    executed, estimated = sum(compiled.count(*inputs)), sum(planned_operations(compiled.planned))
    assert estimated / 3 <= executed <= 3 * estimated


def test_elementwise_test_programs_are_bounded():
    """Each alone; the other test programs are planned in tests/py/emit/test_programs.py, and bounded there."""
    beyond = []
    for program in GROUPS["elementwise"].programs():
        source = load_source(program.function, program.specs)
        work = work_of(source.module, plan_program(source.module)["fusions"])
        if work.planned > work.bound:
            beyond.append((program.name, work))
    assert not beyond


@pytest.mark.parametrize("written_as", [written, simulated])
def test_programs_as_people_write_them_are_bounded(written_as):
    beyond = []
    for name, (function, specs) in written_as().items():
        source = load_source(function, [_abstract(spec) for spec in specs])
        work = work_of(source.module, plan_program(source.module)["fusions"])
        if work.planned > work.bound:
            beyond.append((name, work))
    assert not beyond


def _abstract(spec):
    if spec == "key":
        return jax.eval_shape(lambda: jax.random.key(0))
    dtype, shape = parse_spec(spec)
    return jax.ShapeDtypeStruct(shape, dtype.numpy)


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_random_graphs_are_bounded(first):
    works = {}
    for seed in range(first, first + 25):
        source = load_source(generate(seed).text())
        works[seed] = work_of(source.module, plan_program(source.module)["fusions"])
    assert not {seed: work for seed, work in works.items() if work.planned > work.bound}
    assert math.fsum(work.planned for work in works.values()) > 0
