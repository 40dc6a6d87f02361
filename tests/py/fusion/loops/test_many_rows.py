"""Loops over many rows, whose numbers depend on all of their row: one kernel, and no product left to XLA."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.planned import TARGET, planned
from xgpu.runtime.compare import compare


def linear(y: Any, a: Any) -> Any:
    return lax.fori_loop(0, 100, lambda _, y: jnp.sign(y @ a), y)


def stages(y: Any, a: Any) -> Any:
    """Four stages of dy/dt = tanh(y a) - y in each step."""

    def slope(y: Any) -> Any:
        return jnp.tanh(y @ a) - y

    def step(y: Any, _: Any) -> tuple[Any, None]:
        k = slope(y)
        for _ in range(3):
            k = slope(y + 0.05 * k)
        return y + 0.1 * k, None

    return lax.scan(step, y, None, length=100)[0]


@pytest.mark.parametrize("function", [linear, stages])
@pytest.mark.parametrize(("rows", "numbers"), [(10_000, 8), (100_000, 8), (100_000, 5), (1_000_000, 4)])
def test_a_row_is_a_thread_however_many_there_are(function: Any, rows: int, numbers: int) -> None:
    """Marks of what XLA computes with products are not those of sums; and kernels of a step would move all rows."""
    program = planned(function, (f"f32[{rows},{numbers}]", f"f32[{numbers},{numbers}]"), TARGET, xgpu.Options())
    assert "recurrence" in [kernel.emitter for kernel in program.kernels]
    assert "stablehlo.while" not in str(program.ir("fusions")).split("@main")[1]


@pytest.mark.parametrize("function", [linear, stages])
def test_results(function: Any) -> None:
    program = xgpu.compile(function, "f32[60000,4]", "f32[4,4]")
    assert "recurrence" in [kernel.emitter for kernel in program.kernels]
    y, a = program.random_inputs(1)
    (found,), (expected,) = program.run(y, a), program.reference(y, a)
    if function is stages:
        assert compare(found, expected).agrees
        return
    # Signs, but for the rows in which a sum is so near to zero that its rounding decides, which then go other ways.
    assert np.all(np.isin(found, (-1.0, 0.0, 1.0)))
    assert np.any(found != expected, axis=1).mean() < 2e-3
