"""The work of planning: a bounded number of steps for each operation, however long chains of producers are."""

from collections import Counter

import jax
import jax.numpy as jnp
import pytest

from tests.py.fusion.planning_effort import calls_to_plan, counted_calls
from xgpu.costs.evaluations import Evaluations
from xgpu.costs.recomputation import Costs
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.compiler import plan_prepared, plan_program
from xgpu.frontend.load import load_source
from xgpu.fusion import memory_reads, product_merges
from xgpu.fusion.grouping import shared_values
from xgpu.fusion.grouping.families import Families
from xgpu.fusion.grouping.merging import small_kernels
from xgpu.fusion.loops.steps import Step
from xgpu.indexing import hlo_maps


def _residuals(layers: int):
    """Layers of which each adds to the sum of all before it, as those of a transformer do, and their gradients."""

    def layer(x, w):
        mean = jnp.mean(x, -1, keepdims=True)
        scaled = (x - mean) * jax.lax.rsqrt(jnp.mean(jnp.square(x - mean), -1, keepdims=True) + 1e-5)
        return x + jnp.tanh(scaled.astype(jnp.bfloat16) @ w).astype(jnp.float32)

    def function(x, w):
        for _ in range(layers):
            x = layer(x, w)
        return jnp.sum(x)

    return jax.grad(function, (0, 1))


def _planned_operations(layers: int) -> int:
    """Plan a program of so many layers; return how many operations it has."""
    source = load_source(_residuals(layers), ("f32[512,256]", "bf16[256,256]"))
    plan_program(source.module)
    return str(source.module).count("stablehlo.")


@pytest.mark.parametrize("layers", [4, 16])
def test_few_operations_are_followed_to_find_what_values_cost(monkeypatch, layers):
    followed = Counter[str]()
    of = Costs.of

    def counting(*arguments):
        cost = of(*arguments)
        followed["operations"] += cost.operations
        return cost

    monkeypatch.setattr(Costs, "of", counting)
    operations = _planned_operations(layers)
    assert 0 < followed["operations"] <= 5 * operations


@pytest.mark.parametrize("layers", [4, 16])
def test_what_operations_read_is_found_once(monkeypatch, layers):
    found = Counter[str]()
    accesses = memory_reads.accesses

    def counting(op):
        found["operations"] += 1
        return accesses(op)

    monkeypatch.setattr(memory_reads, "accesses", counting)
    operations = _planned_operations(layers)
    assert 0 < found["operations"] <= operations


@pytest.mark.parametrize("layers", [4, 16])
def test_the_maps_of_an_operation_are_made_once_in_a_plan(monkeypatch, layers):
    prepared = plan_program(load_source(_residuals(layers), ("f32[512,256]", "bf16[256,256]")).module)["prepared"]
    made, accesses = Counter[str](), hlo_maps._accesses

    def counting(op):
        made["maps"] += 1
        return accesses(op)

    monkeypatch.setattr(hlo_maps, "_accesses", counting)
    plan_prepared(prepared, device(DEFAULT_DEVICE), [])
    assert 0 < made["maps"] <= str(prepared).count("stablehlo.")


def _norms(arrays: int):
    """Divide arrays by the root of the sum of all squares."""

    def function(xs):
        norm = jnp.sqrt(sum(jnp.sum(x * x) for x in xs))
        return [x / norm for x in xs]

    return function, ([jax.ShapeDtypeStruct((100 + i,), "float32") for i in range(arrays)],)


def _row_programs(layers: int):
    def function(x, w):
        for _ in range(layers):
            x = jax.nn.softmax(x @ w)
        return x

    return function, ("f32[256,256]", "f32[256,256]")


def _updates(arrays: int):
    def function(x, ys):
        for i, y in enumerate(ys):
            x = jax.lax.dynamic_update_slice(x, jnp.sin(y), (i,))
        return x

    return function, ("f32[4096]", [jax.ShapeDtypeStruct((8,), "float32")] * arrays)


def _chain(operations: int):
    def function(x):
        for _ in range(operations):
            x = jnp.sin(x) * x
        return x

    return function, ("f32[4096]",)


def _mixes(lanes: int, rounds: int):
    """Rounds of a hash: each lane becomes a function of its neighbours, so that all are shared and none is stored."""

    def function(x):
        lane = [x[:, i] for i in range(lanes)]
        for _ in range(rounds):
            sums = [lane[i] ^ lane[(i + 1) % lanes] ^ lane[(i + 2) % lanes] for i in range(lanes)]
            lane = [lane[i] ^ ((sums[i - 1] << 1) | (sums[(i + 1) % lanes] >> 31)) for i in range(lanes)]
        return jnp.stack(lane, 1)

    return function, (f"u32[65536,{lanes}]",)


def _gradient_of_a_stencil(steps: int):
    """The gradient of steps of which each reads its neighbours and a mean."""

    def function(x):
        for _ in range(steps):
            padded = jnp.pad(x, 1)
            x = x + jnp.tanh(padded[:-2, 1:-1] + padded[2:, 1:-1] - 2 * x) * jnp.mean(x)
        return jnp.sum(x**2)

    return jax.grad(function)


def _attention(layers: int):
    """Layers of attention and their gradients, which are chains of products."""

    def function(x, weights):
        for _ in range(layers):
            q, k, v = (jnp.dot(x, each).reshape(2, 512, 4, 64) for each in weights)
            scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / 8)
            x = x + jnp.einsum("bhqk,bkhd->bqhd", scores.astype(x.dtype), v).reshape(x.shape)
        return jnp.sum(x.astype(jnp.float32))

    given = jax.ShapeDtypeStruct((2, 512, 256), "bfloat16"), [jax.ShapeDtypeStruct((256, 256), "bfloat16")] * 3
    return jax.grad(function, (0, 1)), given


def _scatters(arrays: int):
    """Scatters of which all add what is computed from one value in many operations, each to an array of its own."""

    def function(xs, indices, value):
        for _ in range(2 * arrays):
            value = jnp.sin(value) * value
        return [x.at[indices + i].add(value * i) for i, x in enumerate(xs)]

    given = [jax.ShapeDtypeStruct((4096,), "float32")] * arrays
    return function, (given, jax.ShapeDtypeStruct((128,), "int32"), jax.ShapeDtypeStruct((128,), "float32"))


def _states(arrays: int):
    """A loop that updates a slice of one of its arrays, and computes all others."""

    def function(xs, y, u):
        def body(i, state):
            xs, y = state
            return [jnp.sin(x) * i for x in xs], jax.lax.dynamic_update_slice(y, u, (i * i,))

        return jax.lax.fori_loop(0, 10, body, (xs, y))

    given = [jax.ShapeDtypeStruct((100 + i,), "float32") for i in range(arrays)]
    return function, (given, jax.ShapeDtypeStruct((4096,), "float32"), jax.ShapeDtypeStruct((8,), "float32"))


def _products(count: int):
    """Products of one array with several, which would take as long to copy into one as to multiply."""

    def function(x, weights):
        return [x @ w for w in weights]

    given = [jax.ShapeDtypeStruct((4096, 2048), "bfloat16")] * count
    return function, (jax.ShapeDtypeStruct((64, 4096), "bfloat16"), given)


def _residual_products(layers: int):
    """Layers of which each adds a function of a product to what is before it: all products are behind the last one."""

    def function(x, w):
        for _ in range(layers):
            x = jnp.tanh(x @ w) + x
        return x

    return function, ("f32[100,100]", "f32[100,100]")


def _solver(steps: int):
    """Runge-Kutta steps of a network's differential equation: gradients read products as far back as they are made."""

    def function(y, v, w):
        for _ in range(steps):
            first = jnp.tanh(y @ v) @ w
            y = y + jnp.tanh((y + 0.1 * first) @ v) @ w
        return y

    return function, ("f32[64,8]", "f32[8,16]", "f32[16,8]")


def _gradient(function, specs):
    return jax.grad(lambda *arguments: jnp.sum(function(*arguments)), (0, 1)), specs


def _filters(steps: int):
    """Steps of a Kalman filter: products of small matrices, and a small system that is solved by arithmetic."""

    def function(x, p, a, h, q, r, measured):
        for i in range(steps):
            x, p = a @ x, a @ p @ a.T + q
            gain = jnp.linalg.solve(h @ p @ h.T + r, h @ p).T
            x, p = x + gain @ (measured[i] - h @ x), p - gain @ h @ p
        return x, p

    given = ("f32[6]", "f32[6,6]", "f32[6,6]", "f32[3,6]", "f32[6,6]", "f32[3,3]", f"f32[{steps},3]")
    return function, given


def _triangular_systems(count: int):
    def function(matrix, x):
        for _ in range(count):
            x = jax.scipy.linalg.solve_triangular(matrix, jnp.sin(x), lower=True)
        return x

    return function, ("f32[4,4]", "f32[4]")


def _conditionals(count: int):
    def function(x, flags):
        for i in range(count):
            x = jax.lax.cond(flags[i], lambda x: jnp.sin(x) * x, lambda x: x + jnp.cumsum(x), x)
        return x

    return function, ("f32[1000]", f"pred[{count}]")


def _indices(updates: int):
    """Updates in place at numbers of which each is computed from the one before."""

    def function(x, i):
        for _ in range(updates):
            i = (i * 7 + 3) % 100
            x = jax.lax.dynamic_update_slice(x, jnp.sin(jax.lax.dynamic_slice(x, (i,), (8,))), (i + 1,))
        return x

    return function, ("f32[1000]", "s32[]")


def _rolled_steps(steps: int):
    """Steps of a differential equation, each of four stages that read neighbours, which gradients compute again."""

    def slope(x):
        return (jnp.roll(x, -1, 1) - jnp.roll(x, 2, 1)) * jnp.roll(x, 1, 1) - x + 8

    def function(x):
        for _ in range(steps):
            first = slope(x)
            second = slope(x + 0.01 * first)
            third = slope(x + 0.01 * second)
            x = x + 0.02 / 6 * (first + 2 * second + 2 * third + slope(x + 0.02 * third))
        return jnp.sum(x * jnp.cos(jnp.arange(256.0)).reshape(16, 16))

    return jax.grad(function), ("f32[16,16]",)


def _bodies(count: int):
    """A tree of bodies that turn by joints, and forces that are added up towards its root: many small arrays."""

    def turned(by, of):
        scalar = by[0] * of[0] - by[1:] @ of[1:]
        return jnp.concatenate([scalar[None], by[0] * of[1:] + of[0] * by[1:] + jnp.cross(by[1:], of[1:])])

    def function(angles):
        places, turns = [jnp.zeros(3)], [jnp.array([1.0, 0, 0, 0])]
        for i in range(count):
            axis = jnp.array([0.0, 1, 0])
            joint = jnp.concatenate([jnp.cos(angles[i : i + 1]), jnp.sin(angles[i]) * axis])
            turns.append(turned(turns[i // 2], joint))
            places.append(places[i // 2] + 2 * jnp.cross(turns[-1][1:], axis))
        forces = jax.vmap(lambda place, turn: place * turn[0])(jnp.stack(places), jnp.stack(turns))
        for i in range(count, 0, -1):
            forces = forces.at[(i - 1) // 2].add(forces[i])
        return forces

    return jax.vmap(function), (f"f32[16,{count}]",)


def _pairs(steps: int):
    """Functions of all pairs of rows, and their means."""

    def of_pair(a, b):
        return jnp.tanh(a * b) + jnp.cross(a[:3], b[:3]).sum()

    def function(x):
        for _ in range(steps):
            x = jax.vmap(lambda a, x=x: jax.vmap(lambda b: of_pair(a, b))(x))(x).mean(0) + x
        return jnp.sum(x * x)

    return jax.grad(function), ("f32[16,6]",)


PROGRAMS = {
    "gradients of rolled steps": (_rolled_steps, 32),
    "bodies": (_bodies, 64),
    "indices": (_indices, 32),
    "residual products": (_residual_products, 16),
    "gradients of residual products": (lambda layers: _gradient(*_residual_products(layers)), 16),
    "gradients of a solver": (lambda steps: _gradient(*_solver(steps)), 32),
    "filters": (_filters, 4),
    "triangular systems": (_triangular_systems, 8),
    "conditionals": (_conditionals, 16),
    "scatters": (_scatters, 64),
    "attention": (_attention, 4),
    "layers": (lambda layers: (_residuals(layers), ("f32[512,256]", "bf16[256,256]")), 8),
    "norms": (_norms, 100),
    "row programs": (_row_programs, 32),
    "updates": (_updates, 100),
    "chain": (_chain, 100),
    "mixes": (lambda rounds: _mixes(8, rounds), 16),
}


@pytest.mark.parametrize("lanes", [8, 32])
def test_kernels_that_compute_a_value_are_counted_together(monkeypatch, lanes):
    """As many values are stored as there are lanes, each by another kernel, and these compute all that is before."""
    counted = Counter[str]()
    of = Evaluations.of

    def counting(*arguments):
        needs = of(*arguments)
        counted["values"] += bool(needs)
        counted["needs"] += len(needs)
        return needs

    monkeypatch.setattr(Evaluations, "of", counting)
    source = load_source(*_mixes(lanes, 8))
    plan_program(source.module)
    assert 0 < counted["needs"] <= 2 * counted["values"]


def test_operations_are_asked_once_whether_they_are_heroes(monkeypatch):
    """However often the values are grouped: which kernel computes attention takes long to find out."""
    asked, groupings = Counter[str](), Counter[str]()
    kind_of, group_block = Families.kind_of, shared_values.group_block

    def counting(*arguments):
        asked["operations"] += 1
        return kind_of(*arguments)

    def grouping(*arguments):
        groupings["groupings"] += 1
        return group_block(*arguments)

    monkeypatch.setattr(Families, "kind_of", counting)
    monkeypatch.setattr(shared_values, "group_block", grouping)
    prepared = plan_program(load_source(*_rolled_steps(8)).module)["prepared"]
    assert groupings["groupings"] > 1
    assert 0 < asked["operations"] <= str(prepared).count("stablehlo.")


def test_what_was_chosen_is_expected_for_the_next_groups(monkeypatch):
    """Then fewer rounds show that nothing changes any more: 13 without it, of three groupings, and the same plan."""
    rounds = list[int]()
    group_block, choose = shared_values.group_block, shared_values._Round.choose

    def grouping(*arguments):
        rounds.append(0)
        return group_block(*arguments)

    def counting(*arguments):
        rounds[-1] += 1
        return choose(*arguments)

    monkeypatch.setattr(shared_values, "group_block", grouping)
    monkeypatch.setattr(shared_values._Round, "choose", counting)
    plan_program(load_source(_gradient_of_a_stencil(8), ("f32[4096,4096]",)).module)
    assert len(rounds) == 3
    assert sum(rounds) < 13


def test_rounds_that_choose_the_same_are_not_repeated(monkeypatch):
    """What is stored alternates between two choices, and no move is."""
    rounds = list[tuple[object, ...]]()
    choose = shared_values._Round.choose

    def counting(round_, most):
        rounds.append((round_._known, frozenset(round_._stored_at.items())))
        choose(round_, most)

    monkeypatch.setattr(shared_values._Round, "choose", counting)
    plan_program(load_source(*_pairs(8)).module)
    assert 1 < len(rounds) == len(set(rounds))


def _calls(function, arguments) -> int:
    return calls_to_plan(load_source(function, arguments))


@pytest.mark.parametrize(("program", "size"), PROGRAMS.values(), ids=PROGRAMS)
def test_planning_takes_linear_time(program, size):
    # What is kept from one program to the next, such as maps, is there.
    plan_program(load_source(*program(size)).module)
    single, double = _calls(*program(size)), _calls(*program(2 * size))
    assert double <= 2.25 * single


def test_loops_that_are_no_faster_split_are_not_looked_at_as_kernels(monkeypatch):
    """A thread that computes all 256 sums of a step of Viterbi's algorithm takes longer than kernels of all threads."""
    looked_at = list[object]()
    partitions = Step.partitions

    def counting(step):
        looked_at.append(step)
        return partitions(step)

    def function(transitions, emitted):
        def step(best, each):
            sums = best[:, :, None] + transitions
            return jnp.max(sums, 1) + each, jnp.argmax(sums, 1)

        return jax.lax.scan(step, emitted[0], emitted[1:])

    monkeypatch.setattr(Step, "partitions", counting)
    planned = plan_program(load_source(function, ("f32[16,16]", "f32[128,256,16]")).module)
    assert "xgpu.recurrence" not in str(planned["prepared"])
    assert not looked_at


def test_products_of_one_array_are_timed_once_each(monkeypatch):
    timed = Counter[str]()
    seconds = product_merges.library_product_seconds

    def counting(*arguments):
        timed["products"] += 1
        return seconds(*arguments)

    monkeypatch.setattr(product_merges, "library_product_seconds", counting)
    counts = []
    for size in (16, 32):
        timed.clear()
        plan_program(load_source(*_products(size)).module)
        counts.append(timed["products"])
    assert 0 < counts[1] <= 2.25 * counts[0]


def test_kernels_that_may_share_a_launch_are_not_compared_with_each_other(monkeypatch):
    calls = Counter[str]()
    without_conflicts = small_kernels._without_conflicts

    def counting(kernels, *arguments):
        calls["kernels"] += len(kernels)
        with counted_calls() as made:
            result = without_conflicts(kernels, *arguments)
        calls["calls"] += made()
        return result

    monkeypatch.setattr(small_kernels, "_without_conflicts", counting)
    found = []
    for size in (64, 128):
        calls.clear()
        plan_program(load_source(*_states(size)).module)
        assert calls["kernels"] > size
        found.append(calls["calls"])
    assert 0 < found[1] <= 2.25 * found[0]
