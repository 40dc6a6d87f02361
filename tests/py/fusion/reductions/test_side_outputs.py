"""Arrays that a reduction's kernel stores beside its results: where it has enough blocks for what a loop would move."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.runtime.compare import compare


def _total(x: Any, y: Any) -> tuple[Any, Any]:
    return jnp.sum(x), jnp.tanh(x) * y + x


def _of_rows(x: Any, y: Any) -> tuple[Any, Any]:
    return jnp.sum(x * y, 1), jnp.tanh(x) * y + x


@pytest.mark.parametrize(
    ("function", "spec", "emitters"),
    [
        (_total, "f32[2048]", ["reduce_row"]),
        (_total, "f32[65536]", ["parts"]),  # One block of the reduction would take 21 us for what 64 do at once.
        (_of_rows, "f32[4,16384]", ["reduce_row"]),  # As long as a launch.
        (_of_rows, "f32[4096,1024]", ["reduce_row"]),
    ],
)
def test_a_loop_is_merged_where_blocks_are_enough(function: Any, spec: str, emitters: list[str]) -> None:
    program = xgpu.compile(function, spec, spec)
    assert [kernel.emitter for kernel in program.kernels] == emitters
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


def _reshaped(x: Any, y: Any) -> tuple[Any, Any]:
    z = jnp.tanh(x) * y + x
    return jnp.sum(x * x), z


def _chain(x: Any, y: Any) -> tuple[Any, Any]:
    z = jnp.tanh(x) * y
    return z, 1 - 2 * jnp.log1p(z * z).sum(-1)


def _two(x: Any, y: Any) -> tuple[Any, Any, Any]:
    return jnp.exp(x) * y, x.sum(-1) + (y * y).sum(-1), jnp.max(x, -1)


def _normed(x: Any, y: Any) -> tuple[Any, Any]:
    norm = (x * x).sum(-1, keepdims=True)
    return x / norm + y, norm


@pytest.mark.parametrize(
    ("function", "spec", "emitters"),
    [
        # The sum is split, and reads rows of another length than the array's.
        (_reshaped, "f32[4096,1024]", ["reduce_row", "reduce_row"]),
        (_chain, "f32[65536,8]", ["reduce_row"]),
        (_chain, "f32[65536,4]", ["reduce_row"]),
        (_chain, "bf16[65536,8]", ["reduce_row"]),
        (_chain, "f32[4001,2]", ["reduce_row"]),
        # Parts of vectors would be stored apart.
        (_chain, "f32[65536,3]", ["parts"]),
        # Rows that are longer than a vector are held by threads side by side, which store what they read of them.
        (_chain, "f32[65536,6]", ["reduce_row"]),
        (_two, "f32[65536,8]", ["reduce_row"]),
        # Each element needs the sum of its row.
        (_normed, "f32[262144,4]", ["rows"]),
    ],
)
def test_sums_of_reshaped_and_of_short_rows(function: Any, spec: str, emitters: list[str]) -> None:
    program = xgpu.compile(function, spec, spec)
    assert [kernel.emitter for kernel in program.kernels] == emitters
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


def _beside_sorts(x: Any, y: Any) -> tuple[Any, Any]:
    z = jnp.tanh(x) * y
    return jnp.sort(z, -1), jnp.argmax(z, -1)


def _beside_a_product(x: Any, y: Any) -> tuple[Any, Any]:
    z = jnp.tanh(x) * y
    return z @ z.T, z.sum(0)


def _beside_two(x: Any, y: Any) -> tuple[Any, Any, Any]:
    z = jnp.tanh(x) * y
    return jnp.sort(z, -1), z.max(-1), jnp.cumsum(z.sum(0))


def _of_what_is_made_as_late(x: Any, y: Any) -> tuple[Any, Any]:
    z, w = jnp.tanh(x) * y, jnp.sort(x * y, -1)
    return jnp.sort(z, -1), (z * w).sum(-1)


@pytest.mark.parametrize(
    ("function", "emitters"),
    [
        (_beside_sorts, ["reduce_row"]),
        (_beside_a_product, ["reduce_column", "reduce_column"]),
        (_beside_two, ["reduce_row", "reduce_column", "reduce_column", "scan_row"]),
        (_of_what_is_made_as_late, ["loop", "reduce_row"]),
    ],
)
def test_a_reduction_of_what_xla_reads_stores_that(function: Any, emitters: list[str]) -> None:
    program = xgpu.compile(function, "f32[1024,768]", "f32[1024,768]")
    assert [kernel.emitter for kernel in program.kernels] == emitters
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


def test_a_reduction_that_is_moved_takes_up_loops_of_its_new_level() -> None:
    """Two loops of one level, the second with the same elements in another shape."""

    def function(x: Any, y: Any, v: Any) -> tuple[Any, Any, Any]:
        z = jnp.tanh(x) * y
        return jnp.sort(z, -1), z.max(-1), jnp.sort(jnp.exp(x).reshape(512, 1536) + v, -1)

    program = xgpu.compile(function, "f32[1024,768]", "f32[1024,768]", "f32[512,1536]")
    assert [kernel.emitter for kernel in program.kernels] == ["reduce_row"]
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


def test_roots_that_row_programs_drop_are_not_read_by_kernels_that_are_moved() -> None:
    def function(x: Any, y: Any) -> Any:
        def body(state: Any, _: Any) -> Any:
            x, y = state
            a = x * 3 + y
            z = a - a.max(-1, keepdims=True)
            sums = tuple(each.reshape(128, 16, 2).sum(-1) for each in (a, z))
            t = jnp.sort(z, -1)
            return (t, t + x), sums

        return lax.scan(body, (x, y), None, length=3)

    program = xgpu.compile(function, "s32[128,32]", "s32[128,32]")
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


@pytest.mark.parametrize("combine", [lax.add, lax.mul, lax.max])
def test_short_reductions_beside_what_they_reduce_take_their_initial_value_once(combine: Any) -> None:
    def function(x: Any, place: Any, start: Any) -> tuple[Any, Any]:
        rows = lax.dynamic_index_in_dim(x, place, keepdims=False)
        return rows, lax.reduce(rows, start, combine, (0,))

    program = xgpu.compile(function, "f32[2,4,64]", "s32[]", "f32[]")
    assert [kernel.emitter for kernel in program.kernels] == ["reduce_column"]
    x = np.arange(512, dtype=np.float32).reshape(2, 4, 64) % 7
    for start in (2.0, 40.0):
        _, found = program.run(x, np.int32(1), np.float32(start))
        expected = lax.reduce(x[1], np.float32(start), combine, (0,))
        np.testing.assert_array_equal(found, expected)


def _blurred(a: Any) -> Any:
    v = jnp.tanh(jnp.sin(a) * jnp.exp(-a * a) + jnp.log1p(jnp.abs(a)))
    return v + jnp.roll(v, 1, 0) + jnp.roll(v, -1, 0) + jnp.roll(v, 1, 1)


@pytest.mark.parametrize("axis", [None, 1])
def test_what_neighbours_are_read_of_is_stored_by_a_kernel_before(axis: int | None) -> None:
    """The reduction would compute it again for each of them, and store it for nobody."""
    program = xgpu.compile(lambda a: _blurred(a).sum(axis), "f32[512,2048]")
    first, *others = program.launches
    assert first.kernel.emitter == "loop"
    assert "tanh" in first.kernel.text("emitted")
    assert not any("tanh" in each.kernel.text("emitted") for each in others)
    arrays = program.random_inputs(0)
    np.testing.assert_allclose(program.run(*arrays)[0], program.reference(*arrays)[0], rtol=1e-4, atol=1e-2)


def _step(u: Any, mode: str) -> Any:
    p = jnp.pad(u, 1, mode=mode)
    return jnp.tanh(p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2])


@pytest.mark.parametrize("mode", ["edge", "constant"])
def test_a_new_state_and_its_change_are_computed_together(mode: str) -> None:
    """The maximum is of parts of the array, another shape of which the state is stored in."""

    def function(u: Any) -> Any:
        new = _step(u, mode)
        return new, jnp.abs(new - u).max()

    program = xgpu.compile(function, "f32[512,1024]")
    first = program.launches[0].kernel
    assert first.emitter == "reduce_row"
    assert first.text("emitted").count("math.tanh") == 1
    (u,) = program.random_inputs(0)
    for found, expected in zip(program.run(u, sanitize=True), program.reference(u), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
