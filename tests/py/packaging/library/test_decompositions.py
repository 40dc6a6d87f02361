"""QR factors, eigenvalues and singular values, which packages compute by loops: as accurate as LAPACK's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.py.effort import by_level, drawn
from tests.py.packaging.packages import Library, exported

NUMBERS = np.random.default_rng(0)
SIZE = 24
BASIS = np.linalg.qr(NUMBERS.standard_normal((SIZE, SIZE)))[0]


def matrix(*shape: int) -> Any:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def complex_matrix(*shape: int) -> Any:
    return matrix(*shape) + 1j * matrix(*shape)


def of_values(values: Any) -> Any:
    """Return a symmetric matrix with these eigenvalues."""
    found = BASIS * values @ BASIS.T
    return ((found + found.T) / 2).astype(np.float32)


MATRICES: dict[str, Any] = {
    "one": matrix(1, 1),
    "two": matrix(2, 2),
    "odd": matrix(5, 5),
    "zeros": np.zeros((5, 5), np.float32),
    "in order already": np.diag(np.arange(5, dtype=np.float32))[::-1],
    "tall": matrix(20, 13),
    "of rank three": matrix(20, 3) @ matrix(3, 13),
    "a column of zeros": matrix(20, 13) * (np.arange(13) != 3),
    "wide": matrix(4, 9),
    "a batch": matrix(3, 7, 5),
    "a column": matrix(3, 1),
    "ones": np.ones((SIZE, SIZE), np.float32),
    "close values": of_values(np.r_[np.ones(SIZE // 2), 1 + 1e-6 * np.arange(SIZE // 2)]),
    "values of all sizes": of_values(2.0 ** -np.arange(SIZE)),
    "pairs of both signs": of_values(np.r_[np.full(SIZE // 2, 1e18), np.full(SIZE // 2, -1e18)]),
    "tiny": of_values(np.linspace(1, 2, SIZE) * 1e-30),
    "large": of_values(np.linspace(1, 2, SIZE) * 1e30),
    "complex, one": complex_matrix(1, 1),
    "complex, two": complex_matrix(2, 2),
    "complex, odd": complex_matrix(7, 7),
    "complex, imaginary": 1j * matrix(7, 7),
    "complex, zeros": np.zeros((7, 7), np.complex64),
    "complex, tiny": complex_matrix(7, 7) * np.float32(1e-30),
    "complex, large": complex_matrix(7, 7) * np.float32(1e30),
    "complex, tall": complex_matrix(12, 5),
    "complex, of rank two": complex_matrix(12, 2) @ complex_matrix(2, 5),
    "complex, wide": complex_matrix(4, 9),
    "complex, a batch": complex_matrix(3, 6, 4),
    "complex, of real numbers": of_values(np.linspace(-3, 1, SIZE)).astype(np.complex64),
}
"""Those of one shape and type, which stand together, are given to one package, as numbers change nothing compiled."""
NAMES = drawn(list(MATRICES), by_level(6, len(MATRICES), len(MATRICES)))
DECOMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "qr, reduced": lambda a: jnp.linalg.qr(a, mode="reduced"),
    "qr, complete": lambda a: jnp.linalg.qr(a, mode="complete"),
    "eigh": lambda a: jnp.linalg.eigh(a, symmetrize_input=False),
    "svd, reduced": lambda a: jnp.linalg.svd(a, full_matrices=False),
    "svd, complete": lambda a: jnp.linalg.svd(a, full_matrices=True),
}
Decompose = Callable[[str, str], list[Any]]


@pytest.fixture(scope="module")
def decompose(tmp_path_factory: pytest.TempPathFactory) -> Decompose:
    """Returns the results of a decomposition of one of the matrices, both by name, in double precision."""
    libraries: dict[Any, Library] = {}

    def results(decomposition: str, name: str) -> list[Any]:
        a = MATRICES[name]
        key = decomposition, a.shape, a.dtype
        if key not in libraries:
            libraries[key] = built(DECOMPOSITIONS[decomposition], a, to=tmp_path_factory.mktemp("package"))
        return [wide(each) for each in libraries[key].run((a,))]

    return results


def wide(array: Any) -> Any:
    """Return numbers in double precision."""
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def scaled(name: str) -> tuple[Any, Any]:
    """Return a matrix in double precision, divided by its largest element, and that element."""
    found = wide(MATRICES[name])
    scale = abs(found).max() or 1.0
    return found / scale, scale


def built(function: Callable[..., Any], *arguments: Any, to: Path) -> Library:
    package = exported(function, *arguments, to=to, name="decomposed")
    assert not package.waits
    return Library(to, package)


def run(function: Callable[..., Any], *arguments: Any, to: Path) -> list[Any]:
    return built(function, *arguments, to=to).run(arguments)


def check_orthogonal(columns: Any) -> None:
    product = np.conj(np.swapaxes(columns, -1, -2)) @ columns
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), atol=3e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(name: str, mode: str, decompose: Decompose) -> None:
    a, scale = scaled(name)
    q, r = decompose(f"qr, {mode}", name)
    check_orthogonal(q)
    assert (np.tril(r, -1) == 0).all()
    np.testing.assert_allclose(q @ (r / scale), a, atol=1e-5)
    assert q.shape[-1] == (a.shape[-2] if mode == "complete" else min(a.shape[-2:]))


@pytest.mark.parametrize("name", [name for name in NAMES if MATRICES[name].shape[-1] == MATRICES[name].shape[-2]])
def test_eigenvalues(name: str, decompose: Decompose) -> None:
    a = MATRICES[name]
    values, vectors = decompose("eigh", name)
    symmetric = np.tril(wide(a)) + np.conj(np.tril(wide(a), -1)).T
    symmetric -= 1j * np.diag(np.diag(symmetric).imag) if np.iscomplexobj(a) else 0
    scale = abs(symmetric).max() or 1.0
    check_orthogonal(vectors)
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(values / scale, np.linalg.eigvalsh(symmetric) / scale, atol=1e-5)
    np.testing.assert_allclose(symmetric / scale @ vectors, vectors * values / scale, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_singular_values(name: str, mode: str, decompose: Decompose) -> None:
    a, scale = scaled(name)
    u, s, v = decompose(f"svd, {mode}", name)
    check_orthogonal(u)
    check_orthogonal(np.conj(np.swapaxes(v, -1, -2)))
    count = min(a.shape[-2:])
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    np.testing.assert_allclose(s / scale, np.linalg.svd(a, compute_uv=False), atol=1e-5)
    product = u[..., :count] * (s / scale)[..., None, :] @ v[..., :count, :]
    np.testing.assert_allclose(product, a, atol=1e-5)


def by_library(algorithm: Any) -> Callable[[Any], Any]:
    """Return a function of all that a library's algorithm returns, in a form that has no signs."""

    def decompose(a: Any) -> Any:
        u, s, v = lax.linalg.svd(a, full_matrices=False, algorithm=algorithm)
        return s, jnp.einsum("ij,j,jk->ik", u, s, v, precision="highest")

    return decompose


QR = lax.linalg.SvdAlgorithm.QR
TOGETHER: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "QR's algorithm, wide": (by_library(QR), (matrix(6, 9),)),
    "QR's algorithm, tall": (by_library(QR), (matrix(9, 6),)),
    "QR's algorithm, complex and wide": (by_library(QR), (complex_matrix(4, 6),)),
    "QR's algorithm, complex and tall": (by_library(QR), (complex_matrix(6, 4),)),
    "a complex pseudoinverse": (jnp.linalg.pinv, (complex_matrix(6, 4),)),
    "complex reflections from the left": (
        lambda a, c: jax.scipy.linalg.qr_multiply(a, c, mode="left")[0],
        (complex_matrix(6, 4), complex_matrix(4, 3)),
    ),
    "complex reflections from the right": (
        lambda a, c: jax.scipy.linalg.qr_multiply(a, c, mode="right")[0],
        (complex_matrix(6, 4), complex_matrix(3, 6)),
    ),
    "complex reflections of conjugates": (
        lambda a, c: jax.scipy.linalg.qr_multiply(a, c, mode="right", conjugate=True)[0],
        (complex_matrix(6, 4), complex_matrix(3, 6)),
    ),
    "values alone": (lambda a: lax.linalg.svd(a, compute_uv=False, algorithm=QR)[0], (matrix(9, 6),)),
    "least squares": (lambda a, b: jnp.linalg.lstsq(a, b)[0], (matrix(20, 5), matrix(20))),
    "a pseudoinverse": (jnp.linalg.pinv, (matrix(6, 4),)),
    "a norm and a rank": (lambda a: (jnp.linalg.norm(a, 2), jnp.linalg.matrix_rank(a)), (matrix(6, 4),)),
    "principal components": (lambda x: jnp.linalg.eigvalsh(jnp.cov(x.T)), (matrix(30, 5),)),
    "a gradient": (jax.grad(lambda a: jnp.sum(jnp.linalg.eigh(a)[0] ** 2)), (of_values(np.linspace(1, 4, SIZE)),)),
    "reflections from the left": (
        lambda a, c: jax.scipy.linalg.qr_multiply(a, c, mode="left")[0],
        (matrix(6, 4), matrix(4, 3)),
    ),
    "reflections from the right": (
        lambda a, c: jax.scipy.linalg.qr_multiply(a, c, mode="right")[0],
        (matrix(6, 4), matrix(3, 6)),
    ),
    "reflections of conjugates": (
        lambda a, c: jax.scipy.linalg.qr_multiply(a, c, mode="right", conjugate=True)[0],
        (matrix(6, 4), matrix(3, 6)),
    ),
}


@pytest.mark.parametrize("name", drawn(list(TOGETHER), by_level(4, len(TOGETHER), len(TOGETHER))))
def test_programs_of_them(name: str, tmp_path: Path) -> None:
    function, arguments = TOGETHER[name]
    found = run(function, *arguments, to=tmp_path)
    for result, wanted in zip(found, jax.tree.leaves(function(*arguments)), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("given", [matrix(6, 6), complex_matrix(6, 6)], ids=["real", "complex"])
def test_no_number_makes_none(given: Any, tmp_path: Path) -> None:
    a = np.where(np.arange(36).reshape(6, 6) == 15, np.nan, given).astype(given.dtype)
    found = run(lambda a: (jnp.linalg.eigh(a), jnp.linalg.svd(a)), a, to=tmp_path)
    assert all(np.isnan(each).all() for each in found)


def test_double_precision(tmp_path: Path) -> None:
    with jax.enable_x64(True):
        a = NUMBERS.standard_normal((12, 12))
        found = run(lambda a: (jnp.linalg.eigh(a + a.T), jnp.linalg.svd(a), jnp.linalg.qr(a)), a, to=tmp_path)
    values, vectors, u, s, v, q, r = found
    np.testing.assert_allclose((a + a.T) @ vectors, vectors * values, atol=1e-13)
    np.testing.assert_allclose(u * s @ v, a, atol=1e-13)
    np.testing.assert_allclose(q @ r, a, atol=1e-13)
