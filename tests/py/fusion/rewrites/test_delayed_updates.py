"""Slices that one launch updates: those of a loop's stacks wait for each other where nothing they read changes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu
from xgpu.interface.explanation import explain
from xgpu.runtime.compare import compare

UPDATE = "update_slice"


def kernels(function: Any, *arguments: Any) -> list[tuple[tuple[str, ...], int, tuple[int, ...]]]:
    """Return of each kernel the families of its parts, the number of its launches, and what it updates.

    Results of the function, which is given arrays, are compared with those of JAX.
    """
    expected = jax.jit(function)(*arguments)
    jax.tree.map(
        lambda found, each: np.testing.assert_allclose(found, each, rtol=1e-5, atol=1e-5),
        xgpu.jit(function)(*arguments),
        expected,
    )
    compiled = xgpu.compile(function, *arguments)
    aliases = {launch.kernel.name: launch.kernel.aliases for launch in compiled.launches}
    return [
        (tuple(part.emitter for part in each.parts or (each,)), each.launches, aliases[each.name])
        for each in explain(compiled).kernels
    ]


def drawn(*shape: int) -> jax.Array:
    return jnp.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def test_slices_of_several_shapes_are_updated_by_one_kernel() -> None:
    def function(a: Any, b: Any, x: Any, i: Any) -> Any:
        return lax.dynamic_update_slice(a, jnp.sin(x), (i[0], i[1])), lax.dynamic_update_slice(b, x[0] + 1, (i[1],))

    compiled = xgpu.compile(function, "f32[100,8]", "f32[61]", "f32[3,4]", "s32[2]")
    (kernel,) = compiled.kernels
    assert (kernel.emitter, kernel.aliases) == ("parts", (0, 1))
    inputs = [*compiled.random_inputs(0)[:3], np.array([98, -3], np.int32)]
    found, expected = compiled.run(*inputs, sanitize=True), compiled.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


def test_what_a_loop_keeps_of_each_step_is_stored_by_one_launch() -> None:
    """Three values of different shapes, each made by a kernel of another level."""

    def step(x: Any, row: Any) -> Any:
        columns = x.sum(0) + row
        rows = 0.01 * jnp.sin(x * columns).sum(1)
        return 0.5 * x + rows[:, None], (columns, rows, jnp.cos(rows[:3]))

    found = kernels(lambda x, rows: lax.scan(step, x, rows), drawn(40, 6), drawn(7, 6))
    (together,) = [each for each, _, _ in found if UPDATE in each]
    assert together.count(UPDATE) == 3


def test_a_state_is_kept_before_it_is_overwritten() -> None:
    """The kernel of the next state overwrites the one before, which is no part of what stores that one."""

    def step(x: Any, row: Any) -> Any:
        total = x.sum(0) + row
        return jnp.sin(x) + 0.01 * total, (x, total)

    found = kernels(lambda x, rows: lax.scan(step, x, rows), drawn(40, 6), drawn(9, 6))
    assert [each for each, _, _ in found if "loop" in each and UPDATE in each] == []
    assert [aliases for each, _, aliases in found if each == ("loop",)] == [(0,)]
    assert sum(UPDATE in each for each, _, _ in found) == 1


def test_a_stack_is_read_before_it_is_updated() -> None:
    """An update that reads what another one changes does not wait for that, and is no part of its kernel."""

    def step(i: Any, stacks: Any) -> Any:
        first, second, x = stacks
        kept = lax.dynamic_update_slice(second, first[lax.rem(i + 3, 7)][None, :4] * 2, (i, 0))
        x = x + 0.01 * jnp.cos(x).sum()
        return lax.dynamic_update_slice(first, x[None], (i, 0)), kept, x

    def function(first: Any, second: Any, x: Any) -> Any:
        return lax.fori_loop(0, 7, step, (first, second, x))

    found = kernels(function, drawn(7, 40), drawn(7, 4), drawn(40))
    assert all(each.count(UPDATE) <= 1 for each, _, _ in found)
    assert sum(UPDATE in each for each, _, _ in found) == 2


def test_an_update_of_what_another_one_makes_comes_after_it() -> None:
    """The first could wait for the third, which stores a sum, but the second updates the same stack after it."""

    def step(i: Any, state: Any) -> Any:
        stack, sums, x, y = state
        stack = lax.dynamic_update_slice(stack, jnp.cos(y)[None], (i, 0))
        stack = lax.dynamic_update_slice(stack, (y[:2] * 2)[None], (8 - i, 1))
        # Not of terms that cancel, of which no digit of the sum is left.
        total = jnp.cos(x).sum()
        return stack, lax.dynamic_update_slice(sums, total[None], (i,)), x + 1e-5 * total, y

    def function(*state: Any) -> Any:
        return lax.fori_loop(0, 9, step, state)

    found = kernels(function, drawn(9, 5000), drawn(9), drawn(5000), drawn(5000))
    assert sum(each.count(UPDATE) for each, _, _ in found) == 3


def test_large_slices_do_not_wait() -> None:
    """What would take longer than a launch is stored while it is in the cache, and frees its memory."""

    def step(x: Any, row: Any) -> Any:
        kept = jnp.sin(x) + row
        return x + 1e-3 * kept.sum(), (kept, kept[:10], kept[:20])

    program = xgpu.compile(lambda x, rows: lax.scan(step, x, rows), "f32[4194304]", "f32[3,4194304]")
    parts = [[part.emitter for part in each.parts or (each,)] for each in explain(program).kernels]
    assert sorted(each.count(UPDATE) for each in parts if UPDATE in each) == [1, 2]
