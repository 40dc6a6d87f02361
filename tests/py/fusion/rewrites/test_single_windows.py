"""Scatters of one window at a known place that is most of the array: updates of slices, part of other kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

UPDATES = {
    "add": lambda x, u: x.at[1:-1, 2:-2].add(u),
    "overwrite": lambda x, u: x.at[1:-1, 2:-2].set(u),
    "multiply": lambda x, u: x.at[1:-1, 2:-2].multiply(u),
    "minimum": lambda x, u: x.at[1:-1, 2:-2].min(u),
    "maximum": lambda x, u: x.at[1:-1, 2:-2].max(u),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize("dtype", ["f32", "s32", "bf16"])
def test_a_window_inside_is_one_loop(update, dtype):
    compiled = xgpu.compile(lambda x, u: update(x * 2, u), f"{dtype}[20,30]", f"{dtype}[18,26]")
    assert [launch.kernel.emitter for launch in compiled.launches] == ["loop"]
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_what_a_window_leaves_keeps_its_sign():
    compiled = xgpu.compile(lambda x, u: x.at[1:].add(u), "f32[4]", "f32[3]")
    (result,) = compiled.run(np.full(4, -0.0, np.float32), np.zeros(3, np.float32))
    np.testing.assert_array_equal(np.signbit(result), [True, False, False, False])


def _scatter(start: int):
    numbers = jax.lax.ScatterDimensionNumbers((0,), (), (0,))
    mode = jax.lax.GatherScatterMode.FILL_OR_DROP
    return lambda x, u: jax.lax.scatter_add(x * 2, jnp.array([start]), u, numbers, mode=mode)


@pytest.mark.parametrize("start", [-1, 3])
def test_a_window_that_is_not_inside_as_a_whole_is_dropped(start):
    compiled = xgpu.compile(_scatter(start), "f32[10]", "f32[8]")
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])
    assert "scatter" not in compiled.ir("fusions")


@pytest.mark.parametrize(
    ("function", "emitter"),
    [
        (lambda x, u: x.at[:8].add(u), "scatter"),
        (lambda x, u: (x * 2).at[:8].add(u), "scatter"),
        (lambda x, u: x.at[:8].set(u), "update_slice"),
    ],
)
def test_a_small_window_is_updated_in_place(function, emitter):
    compiled = xgpu.compile(function, "f32[320]", "f32[8]")
    assert [launch.kernel.emitter for launch in compiled.launches][-1] == emitter


@pytest.mark.parametrize("columns", [2, 4, 7, 12])
def test_updates_of_columns_are_part_of_other_kernels(columns):
    """A column lies in most sectors of an array of few columns, which would be moved for each update in place."""

    def function(x, u):
        x = x.at[:, 1].set(u * x[:, 0])
        x = x.at[:, columns - 1].add(x[:, 1])
        return x.at[:, 0].set(2 * x[:, columns - 1])

    compiled = xgpu.compile(function, f"f32[100,{columns}]", "f32[100]")
    assert [launch.kernel.emitter for launch in compiled.launches] == ["loop"]
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


@pytest.mark.parametrize(("batch", "sizes"), [(0, (1, 3, 2)), (1, (2, 1, 2)), (2, (2, 3, 1))])
def test_a_window_of_each_batch_without_indices_is_in_the_order_of_the_result(batch, sizes):
    """Each begins at zero; a result has its batch first, wherever it is in the operand."""
    numbers = lax.GatherDimensionNumbers((1, 2), (), (), (batch,), (0,))
    shape = (3, 4, 5)
    x, indices = np.arange(60, dtype=np.float32).reshape(shape), np.zeros((shape[batch], 0), np.int32)
    compiled = xgpu.compile(
        lambda x, i: lax.gather(x * 2, i, numbers, sizes, mode="clip"), "f32[3,4,5]", f"s32[{shape[batch]},0]"
    )
    window = tuple(slice(None) if i == batch else slice(size) for i, size in enumerate(sizes))
    expected = np.moveaxis(2 * x[window], batch, 0)
    np.testing.assert_array_equal(compiled.run(x, indices)[0], expected)


def test_gradients_of_updates_of_columns_are_few_kernels():
    def predict(x, u):
        step = u - x[:, 0]
        for column in range(1, 6):
            following = step - x[:, column]
            x, step = x.at[:, column].set(step), following
        return jnp.sum(jnp.sin(x))

    compiled = xgpu.compile(jax.grad(predict, (0, 1)), "f32[100,8]", "f32[100]")
    assert not {launch.kernel.emitter for launch in compiled.launches} & {"scatter", "update_slice"}
    assert len(compiled.launches) <= 3
    inputs = compiled.random_inputs(1)
    for ours, theirs in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_what_is_written_over_what_a_kernel_computes_is_part_of_it():
    compiled = xgpu.compile(lambda x, u: (x * 2).at[:8].set(u), "f32[32]", "f32[8]")
    assert [launch.kernel.emitter for launch in compiled.launches] == ["loop"]
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


@pytest.mark.parametrize("steps", [4, 16])
def test_steps_of_a_stencil_are_a_few_kernels(steps):
    def function(x):
        for _ in range(steps):
            x = x.at[1:-1].add(0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]))
        return x

    compiled = xgpu.compile(function, "f32[4096]")
    assert len(compiled.launches) <= steps
    inputs = compiled.random_inputs(1)
    # Rounding of a few operations for each step, of numbers up to 1.
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=0, atol=1e-6)


def test_a_place_that_is_computed_step_by_step_takes_no_longer():
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(0,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
    )

    def function(x, update, start):
        for _ in range(40):
            start = start + start
        return lax.scatter(x, start.reshape(1), update, numbers)

    (kernel,) = xgpu.compile(function, "f32[12]", "f32[10]", "s32[]").kernels
    assert kernel.emitter == "scatter"


@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize("update", ["add", "set", "max"])
def test_a_row_of_a_stack_is_another_row(number, update):
    """As of fluxes, to one of which a pressure is added: no array is stored for an update in its place."""
    compiled = xgpu.compile(
        lambda x, u: getattr(jnp.stack([x, x * u, u]).at[number], update)(x - u), *["f32[5000]"] * 2
    )
    assert [launch.kernel.emitter for launch in compiled.launches] == ["loop"]
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])
