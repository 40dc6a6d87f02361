"""Slices of concatenations that lie within one operand: kernels read that operand alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


def _joined(x, y):
    return jnp.concatenate([jnp.sin(x), jnp.cos(y), x + 1], 1)


SLICES = {
    "within": (lambda j: j[:, 9:13], "cosine", ("sine",)),
    "strided": (lambda j: j[1::2, 10:14:3], "cosine", ("sine",)),
    "a whole operand": (lambda j: j[:, :8], "sine", ("cosine",)),
    "of a slice": (lambda j: j[:, 8:15][:, 2:5], "cosine", ("sine",)),
}


@pytest.mark.parametrize(("take", "kept", "gone"), SLICES.values(), ids=SLICES)
def test_a_slice_reads_the_operand_it_is_from(take, kept, gone):
    compiled = xgpu.compile(lambda x, y: take(_joined(x, y)) * 2, "f32[6,8]", "f32[6,7]")
    text = compiled.ir("fusions")
    assert f"stablehlo.{kept}" in text
    assert not any(f"stablehlo.{name}" in text for name in gone)
    inputs = compiled.random_inputs(1)
    # Accuracy of sine and cosine.
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-6, atol=1e-6)


def test_a_slice_of_several_operands_stays():
    compiled = xgpu.compile(lambda x, y: _joined(x, y)[:, 6:12] * 2, "f32[6,8]", "f32[6,7]")
    assert "stablehlo.concatenate" in compiled.ir("fusions")
    inputs = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("links", [4, 12])
def test_a_chain_of_keys_is_one_kernel(links):
    def function(key):
        for i in range(links):
            key = jax.random.fold_in(key, i)
        return key

    compiled = xgpu.compile(function, "u32[2]")
    assert len(compiled.launches) == 1
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])
