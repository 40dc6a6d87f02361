"""Products that loops compute, each element by one thread."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def _filtered(a: Any, b: Any) -> Any:
    """Return the states of a linear recurrence, all at once: products of matrices, and vectors beside them."""

    def combine(first: Any, second: Any) -> Any:
        moved = jnp.einsum("tij,tj->ti", second[0], first[1])
        return jnp.einsum("tij,tjk->tik", second[0], first[0]), moved + second[1]

    return lax.associative_scan(combine, (a * 0.3, b))


def test_each_level_of_a_scan_of_matrices_is_one_kernel() -> None:
    """Interleaving and scaling is done again by each product that reads it, and vectors are made beside matrices."""
    program = xgpu.compile(_filtered, "f32[1024,4,4]", "f32[1024,4]", target="sm_90a")
    # Pairs at nine levels, then at nine what is between, and at last both together.
    assert len(program.launches) == 19
    arrays = program.random_inputs(0)
    for found, expected in zip(program.run(*arrays, on="host"), jax.jit(_filtered)(*arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("of_element", "kernels"),
    [(jnp.exp, 1), (lambda x: lax.erf_inv(jnp.tanh(jnp.sin(x))), 2)],
    ids=["few operations", "many operations"],
)
def test_what_a_product_reads_is_stored_if_that_takes_less(of_element: Any, kernels: int) -> None:
    """Each of eight columns of the result computes its row again."""

    def function(x: Any, w: Any) -> Any:
        return of_element(x) @ w

    program = xgpu.compile(function, "f32[64,16]", "f32[16,8]", target="sm_90a")
    assert len(program.launches) == kernels
    x, w = program.random_inputs(0)
    np.testing.assert_allclose(program.run(x, w, on="host")[0], function(x, w), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "specs", "is_kernel"),
    [
        # A gate of a quantum circuit, and rotations of many points.
        ("ab,xby->xay", ("c64[2,2]", "c64[64,2,8192]"), True),
        ("nij,njk->nik", ("f32[70000,3,3]", "f32[70000,3,3]"), True),
        ("ni,ij->nj", ("bf16[400000,4]", "bf16[4,4]"), True),
        ("ni,ij->nj", ("f32[400000,5]", "f32[5,5]"), False),
    ],
)
def test_sums_of_few_terms_are_kernels_however_many_there_are(equation, specs, is_kernel):
    compiled = xgpu.compile(lambda x, y: jnp.einsum(equation, x, y), *specs)
    assert ("dot_general" not in str(compiled.main)) == is_kernel
    if is_kernel:
        x, y = compiled.random_inputs(1)
        np.testing.assert_allclose(
            np.asarray(compiled.run(x, y)[0], np.complex64),
            np.asarray(compiled.reference(x, y)[0], np.complex64),
            rtol=1e-2 if specs[0].startswith("bf16") else 1e-5,
            atol=1e-5,
        )


@pytest.mark.parametrize(
    ("equation", "specs"),
    [
        # The kernel of a state space by its modes, and a form that is conjugated.
        ("hn,hnl->hl", ("c64[12,32]", "c64[12,32,70]")),
        ("bij,bj->bi", ("c64[7,33,33]", "c64[7,33]")),
        ("i,i->", ("c128[1023]", "c128[1023]")),
    ],
)
def test_complex_products_with_vectors_are_sums(equation, specs):
    compiled = xgpu.compile(lambda x, y: jnp.einsum(equation, jnp.exp(x), y.conj()), *specs)
    assert compiled.main is None
    x, y = compiled.random_inputs(1)
    result, expected = compiled.run(x, y)[0], compiled.reference(x, y)[0]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4 * np.max(np.abs(expected)))


def _angles(d: Any, r: Any) -> Any:
    """Two sums over all pairs of neighbours of each atom, of the cosine of the angle between them."""
    cosine = jnp.einsum("ijd,ikd->ijk", d, d)
    near = jnp.exp(-r[:, :, None] - r[:, None])
    return ((1 + cosine) ** 2 * near).sum((1, 2)), (cosine * near).sum((1, 2))


def test_products_of_few_terms_are_computed_where_they_are_read() -> None:
    """The product has as many elements as there are triples, and none of them is stored."""
    program = xgpu.compile(_angles, "f32[40,48,3]", "f32[40,48]")
    assert [each.kernel.emitter for each in program.launches] == ["reduce_row"]
    arrays = program.random_inputs(0)
    for found, expected in zip(program.run(*arrays), program.reference(*arrays), strict=True):
        # Sums of 2,304 numbers, in another order.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def _distances(x: Any, rotations: Any, y: Any) -> Any:
    moved = jnp.einsum("nd,nde->ne", x, rotations) - y
    return jnp.sqrt((moved * moved).sum(-1) + 1e-4).mean()


def test_sums_of_such_products_are_split_as_they_take_time() -> None:
    """One block would compute all products; what threads do for sums of three is counted, too."""
    program = xgpu.compile(_distances, "f32[65536,3]", "f32[65536,3,3]", "f32[65536,3]")
    assert len(program.launches) == 2
    assert program.launches[0].kernel.grid[0] > 16
    arrays = program.random_inputs(0)
    np.testing.assert_allclose(program.run(*arrays)[0], program.reference(*arrays)[0], rtol=1e-5)
