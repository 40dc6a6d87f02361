"""Which values are updated in their memory, and what is stored so that no kernel reads what it updates."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

S = jax.ShapeDtypeStruct
X, Y, ROWS = S((40, 6), jnp.float32), S((9, 6), jnp.float32), S((9,), jnp.int32)


def plan(function: Any, *specs: Any) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Return of each kernel its emitter, the numbers of the values it reads, and which of those it updates."""
    compiled = xgpu.compile(function, *specs)
    return [(each.kernel.emitter, each.inputs, each.kernel.aliases) for each in compiled.launches]


def test_an_argument_is_updated_in_its_memory() -> None:
    assert plan(lambda x, y, i: x.at[i].add(y), X, Y, ROWS) == [("scatter", (0, 1, 2), (0,))]


def test_a_computed_operand_is_stored_first() -> None:
    found = plan(lambda x, y, i: jnp.exp(x).at[i].add(y) * 2, X, Y, ROWS)
    assert found == [("loop", (0,), (-1,)), ("scatter", (1, 2, 3), (2,)), ("loop", (4,), (-1,))]


def test_indices_and_updates_are_computed_by_the_kernel() -> None:
    found = plan(lambda x, y, i: x.at[i * 2 + 1].add(jnp.exp(y) + 1), X, Y, ROWS)
    assert [emitter for emitter, _, _ in found] == ["scatter"]


def test_updates_that_depend_on_the_operand_are_stored_first() -> None:
    found = plan(lambda x, i: x.at[i].add(x[i] * 2), X, ROWS)
    assert found == [("loop", (0, 1), (-1,)), ("scatter", (0, 1, 2), (0,))]


def test_updates_are_stored_first_though_what_they_depend_on_is_stored_as_well() -> None:
    def function(x: Any, i: Any) -> Any:
        y = x[i] * 2
        updates = y + 1
        return jnp.sort(y.ravel()), x.at[i].add(updates)

    for launch in xgpu.compile(function, X, ROWS).launches:
        updated = [launch.inputs[alias] for alias in launch.kernel.aliases if alias >= 0]
        assert all(launch.inputs.count(value) == 1 for value in updated)
        assert launch.kernel.emitter == "loop" or len(launch.inputs) == 3


@pytest.mark.parametrize(
    "combine",
    [lambda x: jnp.sum(x, 1), lambda x: lax.reduce_window(x[:, 0], 0.0, lax.add, (3,), (1,), "SAME")],
    ids=["sums", "windows"],
)
def test_sums_that_are_their_own_updates_in_another_shape_are_copied(combine: Any) -> None:
    """The kernel of the sums stores them; their other shape would be read there while they are updated."""
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
    )

    def function(x: Any, i: Any) -> Any:
        sums = combine(x)
        return lax.scatter(sums, i[:, None], sums[None], numbers, mode="drop")

    compiled = xgpu.compile(function, X, S((1,), jnp.int32))
    inputs = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-5)
    (update,) = (each for each in compiled.launches if each.kernel.emitter == "scatter")
    assert len(set(update.inputs)) == 3


def test_an_operand_that_is_its_own_update_is_copied() -> None:
    found = plan(lambda x: x.at[jnp.arange(40)[::-1]].add(x), X)
    assert [emitter for emitter, _, _ in found] == ["loop", "scatter"]
    _, inputs, aliases = found[1]
    assert len(set(inputs)) == 2
    assert inputs[aliases[0]] == 1


def test_scatters_of_a_value_that_something_else_reads_update_it_alone() -> None:
    found = plan(lambda x, y, i: (x.at[i].add(y), x.at[i + 1].add(y), x * 2), X, Y, ROWS)
    assert sorted(found) == [("loop", (0,), (-1,)), ("scatter", (0, 1, 2), (0,)), ("scatter", (0, 1, 2), (0,))]


def test_scatters_with_the_same_indices_are_one_kernel() -> None:
    def mean(y: Any, z: Any, i: Any) -> Any:
        return jax.ops.segment_sum(y, i, 7), jax.ops.segment_max(z, i, 7)

    found = plan(mean, Y, Y, ROWS)
    assert found == [("loop", (), (-1, -1)), ("scatter", (0, 1, 2, 3, 4), (3, 4))]


def test_a_result_that_is_updated_again() -> None:
    found = plan(lambda x, y, i: x.at[i].add(y).at[i].multiply(y), X, Y, ROWS)
    assert found == [("scatter", (0, 1, 2), (0,)), ("scatter", (1, 2, 3), (2,))]


@pytest.mark.parametrize(
    "function",
    [lambda x: x.at[jnp.zeros((0,), jnp.int32)].add(jnp.zeros((0, 6))), lambda x: x[:0].at[jnp.arange(3)].add(1)],
    ids=["no-updates", "no-operand"],
)
def test_a_scatter_without_elements_is_no_kernel(function: Any) -> None:
    compiled = xgpu.compile(lambda x: function(x * 2) + 1, X)
    assert "scatter" not in compiled.ir("fusions")


def update(x: Any, y: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(x, y, (i[0], i[1]))


PART = S((9, 2), jnp.float32)


def test_a_slice_of_an_argument_is_updated_in_place() -> None:
    assert plan(update, X, PART, ROWS) == [("update_slice", (0, 1, 2), (0,))]


def test_slices_of_one_shape_are_updated_by_one_kernel() -> None:
    found = plan(lambda x, y, z, i: (update(x, z, i), update(y, z, i[1:])), X, S((30, 8), jnp.float32), PART, ROWS)
    assert found == [("update_slice", (0, 1, 2, 3), (0, 1))]


def test_one_slice_after_another() -> None:
    found = plan(lambda x, y, i: update(update(x, y, i), y + 1, i[2:]), X, PART, ROWS)
    assert found == [("update_slice", (0, 1, 2), (0,)), ("update_slice", (1, 2, 3), (2,))]


def test_a_slice_that_depends_on_the_array_is_stored_first() -> None:
    found = plan(lambda x, i: update(x, lax.dynamic_slice(x, (i[0], i[1]), (9, 2)) + 1, i), X, ROWS)
    assert found == [("loop", (0, 1), (-1,)), ("update_slice", (0, 1, 2), (0,))]


@pytest.mark.parametrize(
    "function",
    [
        # What is only computed with, what is made by a loop anyway, most of an array, two updates of the same array.
        lambda x, y, i: update(x, y, i) * 2,
        lambda x, y, i: update(x * 2, y, i),
        lambda x, y, i: update(x, jnp.zeros((39, 5)), i),
        lambda x, y, i: (update(x, y, i), update(x, y, i[1:])),
    ],
    ids=["read", "computed", "large", "twice"],
)
def test_slices_that_a_loop_updates(function: Any) -> None:
    assert {emitter for emitter, _, _ in plan(function, X, PART, ROWS)} == {"loop"}


def test_a_bitcast_is_updated_in_its_memory() -> None:
    def function(x: Any, y: Any, i: Any) -> Any:
        return update(x[0], y, i)[None]

    compiled = xgpu.compile(function, S((1, 40, 6), jnp.float32), PART, ROWS)
    assert [kernel.emitter for kernel in compiled.kernels] == ["update_slice"]
    inputs = [*compiled.random_inputs()[:2], jnp.arange(9, dtype=jnp.int32)]
    assert jnp.array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_a_scatter_updates_a_bitcast_of_what_a_scan_makes() -> None:
    def function(x: Any, i: Any) -> Any:
        sums = jnp.cumsum(x, axis=1)
        flat = sums.reshape(-1)
        return flat.at[i].set(flat[0] * 0.5).reshape(x.shape), sums

    compiled = xgpu.compile(function, X, ROWS)
    assert [kernel.emitter for kernel in compiled.kernels].count("scatter") == 1
    x, i = (
        np.random.default_rng(0).random(X.shape, np.float32),
        np.arange(ROWS.size, dtype=np.int32).reshape(ROWS.shape),
    )
    for found, expected in zip(compiled.run(x, i), function(jnp.asarray(x), i), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_slice_that_depends_on_what_is_updated_by_another_shape_is_stored_first() -> None:
    def function(x: Any, i: Any) -> Any:
        return update(x.reshape(40, 6), x.reshape(120, 2)[:9] + 1, i)

    compiled = xgpu.compile(function, S((240,), jnp.float32), ROWS)
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop", "update_slice"]
    x = np.arange(240, dtype=np.float32)
    # Not XLA's result, whose compiler for the CPU reads elements that it has updated.
    expected = x.reshape(40, 6).copy()
    expected[3:12, 2:4] = x[:18].reshape(9, 2) + 1
    np.testing.assert_array_equal(compiled.run(x, np.arange(3, -6, -1, dtype=np.int32))[0], expected)


def test_two_updates_of_one_array_under_two_shapes_are_made_by_loops() -> None:
    def function(x: Any, y: Any, i: Any) -> Any:
        return update(x.reshape(40, 6), y, i), update(x.reshape(30, 8), y, i)

    found = plan(function, S((240,), jnp.float32), PART, ROWS)
    assert {emitter for emitter, _, _ in found} == {"parts"}


def test_the_cache_of_one_layer_is_updated_in_a_loop() -> None:
    def function(x: Any, cache: Any, start: Any) -> Any:
        def step(x: Any, old: Any) -> Any:
            new = lax.dynamic_update_slice(old, jnp.sin(x)[None], (start, 0))
            return jnp.sort(new.sum(0)), new

        return lax.scan(step, x, cache)

    found = plan(function, S((20,), jnp.float32), S((1, 40, 20), jnp.float32), S((), jnp.int32))
    assert [emitter for emitter, _, _ in found] == ["update_slice", "reduce_column"]


def test_the_operand_of_a_constant() -> None:
    table = jnp.arange(12.0)
    compiled = xgpu.compile(lambda y, i: table.at[i].add(y), S((9,), jnp.float32), ROWS)
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop", "scatter"]
    inputs = compiled.random_inputs()
    assert jnp.allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_a_scatter_in_a_loop_over_a_carried_array() -> None:
    def function(x: Any, y: Any, i: Any) -> Any:
        return lax.fori_loop(0, 3, lambda step, carried: carried.at[i + step].add(y), x)

    compiled = xgpu.compile(function, X, Y, ROWS)
    assert [kernel.emitter for kernel in compiled.kernels] == ["scatter"]


def _in_a_loop(step, *states, emitters=("loop", "parts")):
    """Compile five steps of a loop over ``states``; return the kernels' aliases and whether the results are XLA's."""

    def more(state):
        # What the state is tells when the loop ends; if its length were known, it would be one kernel.
        return (state[0] < 5) & jnp.all(state[1] == state[1])

    def function(*state):
        return jax.lax.while_loop(more, lambda state: (state[0] + 1, *step(*state[1:])), (0, *state))[1:]

    compiled = xgpu.compile(function, *states)
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        # XLA contracts products and sums of the five steps.
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    called = [launch.kernel for launch in compiled.launches]
    return [kernel.aliases for kernel in called if kernel.emitter in emitters]


@pytest.mark.parametrize("shape", ["f32[1000]", "f32[1048576]", "f32[300007]", "bf16[7,13]", "s4[35]"])
def test_a_loops_state_is_written_where_it_is_read(shape):
    def step(x):
        return (x ^ (x >> 1),) if jnp.issubdtype(x.dtype, jnp.integer) else (jnp.sin(x) + 1,)

    assert _in_a_loop(step, shape) == [(0,)]


def test_several_states_are_written_where_they_are_read():
    aliases = _in_a_loop(lambda x, v: (x + 0.1 * v, v - 0.1 * jnp.sin(x)), "f32[100]", "f32[100]")
    assert aliases == [(0, 1)]


def test_a_state_that_is_read_at_other_indices_has_memory_of_its_own():
    assert _in_a_loop(lambda x: (x + x[::-1],), "f32[100]") == [(-1,)]


def test_a_state_whose_next_value_is_moved_has_memory_of_its_own():
    """As leapfrog steps have it: one field's next value is stored, and the other's depends on its neighbours."""

    def step(e, h):
        h = h + 1
        return e + jnp.roll(h, 1, 0), h

    assert _in_a_loop(step, "f32[100,8]", "f32[100,8]") == [(0, -1)]


def test_states_of_several_shapes_are_written_where_they_are_read():
    assert _in_a_loop(lambda x, v: (x * 2 + 1, v - 1), "f32[100]", "f32[60]") == [(0, 1)]


def test_a_state_that_another_part_reads_has_memory_of_its_own():
    """Its blocks may overwrite it before those of the other part read it."""
    assert _in_a_loop(lambda x, v: (x * 2 + 1, v - x[:60]), "f32[100]", "f32[60]") == [(-1, 1)]


def test_a_state_that_another_part_of_its_shape_reads_has_memory_of_its_own():
    def step(*states):
        return (states[0] + states[-1], *(0.5 * x + 1 for x in states[1:]))

    (aliases,) = _in_a_loop(step, *["f32[50]"] * 18)
    assert aliases == (*range(17), -1)


def test_a_state_that_becomes_another_one_is_copied_before():
    aliases = _in_a_loop(lambda x, y: (y, 0.5 * (x + y)), "f32[100]", "f32[100]")
    assert aliases == [(1,)]


def test_the_states_of_a_batched_loop_are_written_where_they_are_read():
    """Those that have ended keep theirs, by a predicate that `jax.vmap` broadcasts to the shape that it has.

    XLA sorts, so that the loop is no kernel.
    """

    def doubled(x):
        def step(state):
            y = jnp.sort(jnp.tile(jnp.stack(state[1:]), 10))
            return state[0] + 1, 2 * y[-1], y[0]

        return jax.lax.while_loop(lambda s: (s[0] < 5) & (s[1] < 100), step, (0, x, -x))[1]

    compiled = xgpu.compile(jax.vmap(doubled), "f32[1000]")
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])
    assert compiled.launches[-1].kernel.aliases == (0, 1)


def test_a_state_of_which_a_part_is_read_has_memory_of_its_own():
    assert _in_a_loop(lambda x: (jnp.pad(x[:60] + 1, (0, 40)) + x,), "f32[100]") == [(-1,)]


@pytest.mark.parametrize(("axis", "emitter"), [(0, "reduce_column"), (1, "reduce_row")])
@pytest.mark.parametrize("size", [64, 37, 300])
def test_a_state_that_is_walked_to_reduce_it_is_written_where_it_is_read(axis, emitter, size):
    """As in recurrences of linear attention: the next state is stored by the kernel that multiplies it by a query."""

    def step(state, query):
        state = 0.5 * state + query[:, None] * query
        return state, jnp.tanh((state * jnp.expand_dims(query, 1 - axis)).sum(axis))

    found = _in_a_loop(step, f"f32[{size},{size}]", f"f32[{size}]", emitters=(emitter,))
    assert len(found) == 1 and sorted(found[0])[0] == -1 and sorted(found[0])[1] >= 0


@pytest.mark.parametrize(("axis", "emitter"), [(0, "reduce_column"), (1, "reduce_row")])
@pytest.mark.parametrize("shape", ["f32[64,64]", "f32[300,20]", "f32[20,3000]"])
def test_a_state_that_is_added_to_a_sum_is_written_where_it_is_read(axis, emitter, shape):
    def function(x, total):
        def step(state):
            return state[0] + 1, jnp.cos(state[1]), state[2] + state[1].sum(axis)

        return jax.lax.while_loop(lambda s: (s[0] < 5) & jnp.all(s[1] == s[1]), step, (0, x, total))[1:]

    rows, columns = map(int, shape[4:-1].split(","))
    compiled = xgpu.compile(function, shape, f"f32[{(columns, rows)[axis]}]")
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)
    aliases = [launch.kernel.aliases for launch in compiled.launches if launch.kernel.emitter == emitter]
    assert any(max(each, default=-1) >= 0 for each in aliases)


def test_a_state_that_is_reduced_at_other_indices_has_memory_of_its_own():
    """The other one is read for all of a column, before its next value follows from that."""

    def step(state, query):
        new = 0.5 * state + query
        return new, jnp.tanh((new + state.T).sum(0))

    assert _in_a_loop(step, "f32[64,64]", "f32[64]", emitters=("reduce_column",)) in ([(1, -1)], [()])


@pytest.mark.parametrize(("axis", "emitter"), [(0, "columns"), (1, "rows")])
@pytest.mark.parametrize("shape", [(64, 64), (13, 300), (300, 20), (9, 5000)])
def test_states_of_row_programs_are_written_where_they_are_read(axis, emitter, shape):
    """The numbers of a row, too: all its threads have read one when the first of them stores the next."""

    def step(x, level, count):
        ends = x - jnp.expand_dims(x.max(axis), axis) + jnp.expand_dims(level, axis)
        weights = jnp.exp(ends)
        total = weights.sum(axis)
        level = 0.5 * level + jnp.log(total) / 8
        return 0.2 * x + weights / jnp.expand_dims(total, axis), level, 0.5 * count + level

    numbers = f"f32[{shape[1 - axis]}]"
    found = _in_a_loop(step, f"f32[{shape[0]},{shape[1]}]", numbers, numbers, emitters=(emitter,))
    assert [sorted(each) for each in found] == [[0, 1, 2]]


@pytest.mark.parametrize(("axis", "emitter"), [(0, "columns"), (1, "rows")])
@pytest.mark.parametrize("shape", [(64, 64), (3, 300), (300, 20)])
def test_threads_have_read_numbers_of_their_row_before_one_overwrites_them(axis, emitter, shape):
    def function(x, level):
        ends = x - jnp.expand_dims(x.max(axis), axis)
        return ends.sum(axis) + level, jnp.exp(ends + jnp.expand_dims(level, axis))

    compiled = xgpu.compile(function, f"f32[{shape[0]},{shape[1]}]", f"f32[{shape[1 - axis]}]")
    before = f'xgpu.emitter = "{emitter}"'
    updating = xgpu.compile(compiled.ir("fusions").replace(before, f"xgpu.aliases = array<i64: 1, 0>, {before}"))
    assert [kernel.aliases for kernel in updating.kernels] == [(1, 0)]
    inputs = compiled.random_inputs(1)
    found = updating.run(*(each.copy() for each in inputs), sanitize=True)
    for result, expected in zip(found, compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_state_that_a_later_stage_reads_has_memory_of_its_own(axis):
    """The first is stored before the second's stage, which reads it again."""

    def step(x, y):
        highest = jnp.expand_dims(x.max(axis), axis)
        return 0.5 * x + 1, y + x * highest / (1 + jnp.expand_dims((y - highest).sum(axis), axis) ** 2)

    (aliases,) = _in_a_loop(step, "f32[64,96]", "f32[64,96]", emitters=("rows", "columns"))
    assert sorted(aliases) == [-1, 1]


@pytest.mark.parametrize("axis", [0, 1])
def test_results_of_two_shapes_are_computed_before_a_state_is_overwritten(axis):
    def step(x, level, square):
        total = (x * x).sum(axis)
        return jnp.sin(x), 0.5 * level + total, (2 * level + total).reshape(8, 8) + 0.1 * square

    found = _in_a_loop(
        step, "f32[64,64]", "f32[64]", "f32[8,8]", emitters=("reduce_row", "reduce_column", "rows", "columns")
    )
    assert [max(each) >= 0 for each in found] == [True]


@pytest.mark.parametrize("is_program", [False, True], ids=["reduction", "program"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("steps", [
    lambda h, a, b: (h.T + b, 0.3 * h + 0.1),
    lambda h, a, b: (h + b, 0.3 * h.T + 0.1),
    lambda h, a, b: (h.T + a, 0.3 * h.T + 0.1 * b),
    lambda h, a, b: ((h * 2).T + 0.5 * b.T, 0.3 * h + 0.1 * a),
], ids=["turned", "other", "alike", "read_turned"])  # fmt: skip
def test_states_that_are_stored_in_another_order_than_they_are_read(is_program, axis, steps):
    """The thread that stores an element in another order is not the one that reads it in this."""

    def step(x, a, b):
        highest = x.max(axis, keepdims=True)
        h = jnp.exp(x - highest).sum(axis) / 8 if is_program else x.sum(axis)
        return 0.5 * x + 0.01 * (highest if is_program else 1), *steps(h, a, b)

    shape = "f32[64,16,16]" if axis == 0 else "f32[16,16,64]"
    _in_a_loop(step, shape, "f32[16,16]", "f32[16,16]")


def test_cubes_that_are_stored_in_several_orders():
    def step(x, a, b):
        total = x.sum(-1)
        return 0.5 * x, total.transpose(2, 1, 0) + b, (total + a.transpose(2, 1, 0)).transpose(2, 0, 1)

    _in_a_loop(step, "f32[6,6,6,64]", "f32[6,6,6]", "f32[6,6,6]")


def test_a_state_that_is_stored_twice_is_overwritten_once():
    def step(x, y):
        new = jnp.cos(x) + y
        return new, new

    assert _in_a_loop(step, "f32[100]", "f32[100]") == [(0,)]


@pytest.mark.parametrize("updated", [0, 1], ids=["greatest", "places"])
def test_what_is_made_with_an_updated_array_does_not_replace_it(updated: int) -> None:
    """The kernel that updates one result of a reduction computes the other, and with it the first, again."""

    def function(x: Any, places: Any, i: Any) -> Any:
        def greater(left: Any, right: Any) -> Any:
            is_greater = left[0] > right[0]
            return jnp.where(is_greater, left[0], right[0]), jnp.where(is_greater, left[1], right[1])

        made = lax.reduce((x, places), (np.int32(-9), np.int32(0)), greater, (0,))
        return made[updated].at[i].multiply(jnp.pad(made[1 - updated], (5, 0)))

    x = (np.arange(9, dtype=np.int32).reshape(3, 3) * 5) % 7
    arguments = x, np.arange(3, 12, dtype=np.int32).reshape(3, 3), np.array([2, 0, 2, 1, 0, 0, 1, 2], np.int32)
    found = plan(function, *(S(each.shape, each.dtype) for each in arguments))
    assert [emitter for emitter, _, _ in found] == ["loop", "scatter"]
    np.testing.assert_array_equal(xgpu.jit(function)(*arguments), jax.jit(function)(*arguments))
