"""Counts of the operations that kernels execute, on the host."""

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu.errors import InvalidInput

ELEMENTS = 1000


def _counts(function, *specs: str) -> list[int]:
    compiled = xgpu.compile(function, *specs)
    return compiled.count(*compiled.random_inputs(1))


@pytest.mark.parametrize(
    ("function", "each"),
    [
        (lambda x: x * 2, 2),
        (lambda x: jnp.exp(x) + x, 3),
        # The neighbour is loaded, and computed, once more.
        (lambda x: jnp.sin(x) + jnp.sin(x[::-1]), 5),
    ],
)
def test_elementwise_operations_and_loads(function, each):
    assert _counts(function, f"f32[{ELEMENTS}]") == [each * ELEMENTS]


def test_blocks_that_run_at_once_lose_no_count():
    elements = 1 << 16
    assert _counts(lambda x: x + 1, f"f32[{elements}]") == [2 * elements]


def test_threads_that_wait_for_each_other():
    # A transposition by way of shared memory: a load from each, and the multiplication.
    assert _counts(lambda x: (x * 2).T, "f32[64,96]") == [3 * 64 * 96]


def test_each_launch_has_a_count_of_its_own():
    def function(x):
        for _ in range(3):
            x = jnp.cumsum(x).sum() + jnp.flip(x)
        return x

    compiled = xgpu.compile(function, "f32[40]")
    inputs = compiled.random_inputs(2)
    counts = compiled.count(*inputs)
    assert len(counts) == len(compiled.launches)
    assert compiled.count(*inputs) == counts
    assert all(counts)


def test_a_function_that_kernels_call_counts():
    def at_places(count):
        def function(x, i):
            y = x
            for number in range(14):
                y = y * x + number
            return sum(y[i + place] for place in range(count))

        return xgpu.compile(function, "f32[40]", "s32[40]")

    compiled, one = at_places(40), at_places(1)
    assert "func.call" in compiled.ir("lowered")
    # What is read is computed at each place, and added to what there is.
    (steps,), (step,) = (each.count(*each.random_inputs(3)) for each in (compiled, one))
    assert steps == 40 * step


def test_what_is_left_to_xla_is_not_counted():
    compiled = xgpu.compile(lambda x: jax.lax.sort(x) + 1, "f32[40]")
    with pytest.raises(InvalidInput, match="can be counted; parts of this one are left to XLA"):
        compiled.count(*compiled.random_inputs())
