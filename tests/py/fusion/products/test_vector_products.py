"""Products with a vector are sums that kernels compute, with what is around them; so are products of two vectors."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def _check(function: Callable[..., Any], *specs: str) -> xgpu.Compiled:
    """Run on small whole numbers, of which all sums of products are exact in f32, and compare to the bit."""
    program = xgpu.compile(function, *specs)
    assert "dot_general" not in program.ir("prepared")
    generator = np.random.default_rng(0)
    inputs = [generator.integers(-4, 5, spec.shape).astype(spec.dtype.numpy) for spec in program.arguments]
    for result, expected in zip(program.run(*inputs), program.reference(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)
    return program


@pytest.mark.parametrize(
    ("subscripts", "specs"),
    [
        ("mk,k->m", ("f32[512,256]", "f32[256]")),
        ("k,kn->n", ("bf16[256]", "bf16[256,520]")),
        ("mk,nk->mn", ("f16[1,256]", "f16[512,256]")),
        ("k,k->", ("f32[100000]", "f32[100000]")),
        ("bd,bd->b", ("f32[1000,200]", "f32[1000,200]")),
        ("bhd,bshd->bhs", ("bf16[4,8,64]", "bf16[4,100,8,64]")),
        ("bhs,bshd->bhd", ("bf16[4,8,100]", "bf16[4,100,8,64]")),
        ("bij,bjk->bik", ("f32[3000,1,64]", "f32[3000,64,40]")),
        ("ibj,kbi->kbj", ("f32[64,7,1]", "f32[1,7,64]")),
        ("abc,cb->a", ("f32[30,20,10]", "f32[10,20]")),
        ("bi,bj->ijb", ("f32[7,200]", "f32[7,3000]")),
        ("bi,cbj->jcib", ("f32[7,200]", "f32[3,7,300]")),
        ("ik,jk->ij", ("s8[1,2000]", "s8[300,2000]")),
        ("mk,k->m", ("c64[300,200]", "c64[200]")),
    ],
    ids=str,
)
def test_any_dimensions(subscripts: str, specs: tuple[str, str]) -> None:
    wide = jnp.int32 if specs[0].startswith("s8") else None
    _check(lambda x, y: jnp.einsum(subscripts, x, y, preferred_element_type=wide), *specs)


def test_sums_of_small_integers_wrap() -> None:
    _check(jnp.matmul, "s8[300,2000]", "s8[2000]")


def test_what_is_around_a_product_is_part_of_its_kernel() -> None:
    def function(rows: Any, weights: Any, at: Any, bias: Any) -> Any:
        return jnp.maximum(weights[at] @ jnp.abs(rows) + bias, 0)

    program = _check(function, "f32[200]", "f32[40,16,200]", "s32[]", "f32[16]")
    assert [kernel.emitter for kernel in program.kernels] == ["reduce_row"]


def test_a_rank_one_update_is_one_loop() -> None:
    program = _check(lambda w, x, y: w - 2 * jnp.outer(x, y), "f32[2000,900]", "f32[2000]", "f32[900]")
    assert [kernel.emitter for kernel in program.kernels] == ["loop"]


def test_a_transposed_matrix_is_read_as_it_is() -> None:
    """Not by a kernel that transposes it, or whose threads read columns."""
    program = _check(lambda w, x: jnp.transpose(w, (1, 2, 0)) @ x, "f32[70,30,200]", "f32[70]")
    (kernel,) = program.kernels
    assert kernel.emitter == "reduce_column"
    assert "transpose" not in program.ir("prepared").split("stablehlo.reduce")[0]


def test_sums_of_narrow_floats_are_exact_to_the_last_rounding() -> None:
    program = xgpu.compile(jnp.matmul, "bf16[64,3000]", "bf16[3000]")
    inputs = program.random_inputs(1)
    exact = np.matmul(*(each.astype(np.float64) for each in inputs))
    np.testing.assert_allclose(program.run(*inputs)[0].astype(np.float64), exact, rtol=2**-8, atol=2**-8)


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (jnp.matmul, ("f32[64,64]", "f32[64,64]")),
        (jnp.matmul, ("bf16[4096,4096]", "bf16[4096]")),
        (
            lambda x, y: lax.dot(x, y, precision=lax.DotAlgorithmPreset.BF16_BF16_F32_X3),
            ("f32[300,200]", "f32[200]"),
        ),
    ],
    ids=["matrices", "large", "algorithm"],
)
def test_products_that_are_left(function: Callable[..., Any], specs: tuple[str, str]) -> None:
    assert "dot_general" in (xgpu.compile(lambda x, y: function(x, y) + 1, *specs).ir("prepared"))
