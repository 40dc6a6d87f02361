"""Factors and solutions of matrices of more than a few rows, which packages compute by loops."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.py.packaging.packages import Library, exported

NUMBERS = np.random.default_rng(0)


def drawn(*shape: int) -> Any:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def of_complex(*shape: int) -> Any:
    return drawn(*shape) + 1j * drawn(*shape)


MATRIX = drawn(20, 20) + 6 * np.eye(20, dtype=np.float32)
POSITIVE = MATRIX @ MATRIX.T
NEGATIVE = POSITIVE - 90 * np.diag(np.arange(20) == 7).astype(np.float32)
COMPLEX = of_complex(9, 9) + 6 * np.eye(9, dtype=np.float32)
HERMITIAN = COMPLEX @ COMPLEX.conj().T
SINGULAR = MATRIX * (np.arange(20) != 3)


def all_systems(a: Any, b: Any) -> list[Any]:
    """Both triangles, as they are and transposed, with their diagonals and with ones."""
    return [
        lax.linalg.triangular_solve(a * scale, b, left_side=True, lower=lower, transpose_a=turned, unit_diagonal=unit)
        for lower in (True, False)
        for turned in (True, False)
        for unit, scale in ((True, 0.1), (False, 1))
    ]


def adjoints(a: Any, b: Any) -> list[Any]:
    """Both triangles, of the adjoint matrix, from both sides."""
    return [
        lax.linalg.triangular_solve(a, given, left_side=left, lower=lower, transpose_a=True, conjugate_a=True)
        for lower in (True, False)
        for left, given in ((True, b), (False, b.T))
    ]


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "triangles": (all_systems, (MATRIX, drawn(20, 3))),
    "from the right, a batch": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, lower=True),
        (np.stack([MATRIX, MATRIX.T]), drawn(2, 4, 20)),
    ),
    "Cholesky's": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.cholesky(a, upper=True)), (POSITIVE,)),
    "Cholesky's, of which one is not positive": (jnp.linalg.cholesky, (np.stack([POSITIVE, NEGATIVE])[None],)),
    "a factor of Cholesky's alone": (lambda a: jax.scipy.linalg.cho_factor(a)[0], (POSITIVE,)),
    "LU": (jax.scipy.linalg.lu_factor, (drawn(20, 20),)),
    "LU of wide and tall ones": (lambda a: (lax.linalg.lu(a), lax.linalg.lu(a.T)), (drawn(12, 17),)),
    "LU of a batch": (lax.linalg.lu, (drawn(3, 9, 9),)),
    "a system": (jnp.linalg.solve, (MATRIX, drawn(20))),
    "complex triangles": (all_systems, (COMPLEX, of_complex(9, 3))),
    "adjoint triangles": (adjoints, (COMPLEX, of_complex(9, 3))),
    "Cholesky's, complex": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.cholesky(a, upper=True)), (HERMITIAN,)),
    "LU, complex": (lambda a: (lax.linalg.lu(a), lax.linalg.lu(a[:, :4]), lax.linalg.lu(a[:4])), (of_complex(9, 9),)),
    "a complex system": (jnp.linalg.solve, (of_complex(2, 9, 9), of_complex(2, 9, 1))),
    "complex, of no rank": (lambda a: jnp.linalg.det(a), (COMPLEX * (np.arange(9) != 3),)),
    "of no rank": (lambda a: (jnp.linalg.det(a), lax.linalg.lu(a)[0]), (SINGULAR,)),
    "in a loop": (
        lambda a, b: lax.scan(lambda x, _: (jnp.linalg.solve(a, x) + b, x[0]), b, None, length=3),
        (MATRIX, drawn(20)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str, tmp_path: Path) -> None:
    function, arguments = CASES[name]
    package = exported(function, *arguments, to=tmp_path, name="solved")
    assert not package.waits
    found = Library(tmp_path, package).run(arguments)
    for result, wanted in zip(found, jax.tree.leaves(function(*arguments)), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=2e-5)
