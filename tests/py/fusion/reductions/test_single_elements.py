"""Reductions of dimensions of one element are elementwise operations, which are no kernels of their own."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def _starting_from(x: Any) -> Any:
    return lax.reduce(x, np.float32(5), lax.add, (1,))


def _of_two(x: Any, y: Any) -> Any:
    zero, one = np.float32(2), np.int32(1)
    return lax.reduce((x, y), (zero, one), lambda a, b: (a[0] + b[0], jnp.minimum(a[1], b[1])), (1,))


FUSED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "sum": (lambda x: jnp.sum(jnp.sin(x), 1) * 2, ("f32[64,1]",)),
    "maximum": (lambda x: jnp.max(x, (0, 2)) + 1, ("f32[1,7,1]",)),
    "minimum": (lambda x: jnp.min(x, 0), ("s32[1,9]",)),
    "product": (lambda x: jnp.prod(x, 1), ("c64[9,1]",)),
    "from an initial value": (_starting_from, ("f32[9,1]",)),
    "of two operands": (_of_two, ("f32[9,1]", "s32[9,1]")),
    "of nothing but one": (jnp.sum, ("f32[1]",)),
}


@pytest.mark.parametrize("name", FUSED)
def test_single_elements(name: str) -> None:
    function, specs = FUSED[name]
    compiled = xgpu.compile(function, *specs)
    assert [each.kernel.emitter for each in compiled.launches] == ["loop"]
    assert "stablehlo.reduce" not in compiled.ir("fusions")
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        # The sine of two libraries; all else is the same.
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_special_values_stay() -> None:
    x = np.array([[-np.inf], [np.inf], [np.nan], [3e38], [-0.0]], np.float32)
    for function in (jnp.sum, jnp.max, jnp.min, jnp.prod):
        compiled = xgpu.compile(lambda x, function=function: function(x, 1), "f32[5,1]")
        np.testing.assert_array_equal(compiled.run(x)[0], x[:, 0])
        assert np.signbit(compiled.run(x)[0][4])


def test_what_follows_is_one_kernel_with_what_was_before() -> None:
    compiled = xgpu.compile(lambda x: jnp.exp(jnp.sum(x * 2, 2)) - jnp.max(x, (0, 2)), "f32[1,70,1]")
    assert [each.kernel.emitter for each in compiled.launches] == ["loop"]


def test_other_regions_stay_reductions() -> None:
    """A region of several operations is not applied to its initial value outside of the reduction."""
    compiled = xgpu.compile(
        lambda x: lax.reduce(x, np.float32(0), lambda a, b: jnp.where(b > 0, b, a), (1,)), "f32[9,1]"
    )
    assert compiled.ir("fusions").count("stablehlo.reduce(") == 1
