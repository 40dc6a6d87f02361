"""A layer of experts as people write it, through `xgpu.jit` and by kernels on the host, against `jax.jit`."""

import runpy
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

TOKENS, WIDTH, HIDDEN, EXPERTS = 40, 32, 24, 5
EXAMPLE = Path(__file__).parents[3] / "examples" / "experts.py"
layer: Any = runpy.run_path(str(EXAMPLE))["experts"]


def arguments(dtype: Any) -> list[Any]:
    """Return tokens, a router that sends none to the last expert, and matrices."""
    draw = np.random.default_rng(0).standard_normal
    shapes = ((TOKENS, WIDTH), (WIDTH, EXPERTS), (EXPERTS, WIDTH, HIDDEN), (EXPERTS, WIDTH, HIDDEN))
    found = [draw(shape) * shape[-2] ** -0.5 for shape in (*shapes, (EXPERTS, HIDDEN, WIDTH))]
    found[0] = np.abs(found[0])
    found[1][:, -1] = -10
    return [jnp.asarray(each, dtype) for each in found]


def loss(*given: Any) -> Any:
    return jnp.square(layer(*given)).sum()


@pytest.mark.parametrize("function", [layer, jax.grad(loss, argnums=(0, 1, 2, 3, 4))], ids=["layer", "gradients"])
def test_in_jit(function: Any) -> None:
    given = arguments(jnp.float32)
    found, wanted = xgpu.jit(function)(*given), jax.jit(function)(*given)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_in_vmap() -> None:
    given = [jnp.stack([each, each[::-1]]) for each in arguments(jnp.float32)]
    found, wanted = (kind(jax.vmap(layer))(*given) for kind in (xgpu.jit, jax.jit))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("products", ["library", "kernels", "all"])
def test_by_kernels(products: Any) -> None:
    """What the GPU would run, and what XLA would compute there, on this machine."""
    given = arguments(jnp.bfloat16)
    program = xgpu.compile(layer, *given, options=xgpu.Options(products=products))
    kinds = [each.emitter for each in program.kernels]
    assert kinds.count("product") == {"library": 0, "kernels": 2, "all": 2}[products]
    (found,), wanted = program.run(*given), jax.jit(layer)(*given)
    # Products, what follows them and their sums are rounded to bf16, not all at the same places.
    np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=0.02, atol=0.02)
