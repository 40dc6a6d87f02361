"""Scatters to known places that are most of the array: updates of slices, part of other kernels.

That is one window, or windows at equal distances.
"""

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


PLACES = {
    "even": np.s_[:, :, ::2],
    "odd of an odd number": np.s_[:, :, 1::2],
    "one of three": np.s_[:, :, 2::3],
    "two dimensions": np.s_[:, ::2, 1::2],
    "a window beside": np.s_[:, 1:, ::3],
    "a part": np.s_[:, :, 3:11:2],
    "given as numbers": np.s_[:, :, np.arange(0, 13, 4)],
}
STRIDED = {
    "set": lambda x, places, u: x.at[places].set(u),
    "add": lambda x, places, u: x.at[places].add(u),
    "max": lambda x, places, u: x.at[places].max(u),
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("update", STRIDED.values(), ids=STRIDED)
@pytest.mark.parametrize("dtype", ["f32", "s8"])
def test_places_at_equal_distances_are_a_part_of_a_loop(places, update, dtype):
    shape = ",".join(map(str, np.empty((6, 16, 13))[places].shape))
    compiled = xgpu.compile(lambda x, u: update(x, places, u) * 2, f"{dtype}[6,16,13]", f"{dtype}[{shape}]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def _rotary(x, cosines, sines):
    even, odd = x[..., ::2], x[..., 1::2]
    result = jnp.zeros_like(x).at[..., ::2].set(even * cosines - odd * sines)
    return result.at[..., 1::2].set(even * sines + odd * cosines)


def test_rotary_embeddings_put_together_of_even_and_odd_elements_are_one_kernel():
    compiled = xgpu.compile(_rotary, "f32[2,64,4,128]", "f32[64,1,64]", "f32[64,1,64]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    inputs = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("update", "emitter"),
    [
        (lambda x, u: x.at[::64].add(u), "scatter"),
        (lambda x, u: x.at[::64].set(u), "update_slice"),
        # The stride divides the rows only with another one.
        (lambda x, u: x[1:].at[::64].set(u), "scatter"),
    ],
)
def test_few_rows_are_updated_in_place(update, emitter):
    compiled = xgpu.compile(update, "f32[4096,64]", "f32[64,64]")
    assert [launch.kernel.emitter for launch in compiled.launches][-1] == emitter
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_equal_places_stay_a_scatter():
    def function(x, u):
        return x.at[jnp.zeros(8, jnp.int32), jnp.arange(8)[:, None] * 2].add(u)

    compiled = xgpu.compile(function, "f32[4,16]", "f32[8,8]")
    assert "scatter" in compiled.ir("fusions")
    inputs = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-5, atol=1e-5)
