"""What loops, branches and barriers of packages take from around them: numbers that are computed, views of arrays."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu
from tests.py.packaging.packages import Library, exported
from xgpu.packaging.model import LaunchStep

F = np.float32
R = np.random.default_rng(0)


def scaled(s: jax.Array, x: jax.Array) -> jax.Array:
    """A loop that is one kernel, which reads a number that is computed of numbers alone."""
    factor = s * 0.5 + 0.25
    return lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) * factor + i, x)


def viewed(i: jax.Array, x: jax.Array) -> Any:
    """A branch in a branch reads a view of an array from around both."""
    view = jnp.cumsum(x, axis=1).reshape(-1)
    negative = i < 0

    def inner() -> jax.Array:
        return lax.cond(i == 0, lambda: jnp.cumsum(view), lambda: view)

    return lax.cond(negative, lambda: jnp.cumsum(view[::-1]), inner)


def kept_apart(s: jax.Array, x: jax.Array) -> jax.Array:
    """A barrier behind a number, and behind one that a loop computes."""
    factor = lax.optimization_barrier(s * 0.5 + 0.25)
    steps = lax.while_loop(lambda n: n * factor < 5, lambda n: lax.optimization_barrier(n + 1), jnp.float32(0))
    return x * factor + lax.optimization_barrier(steps * 2)


def test_a_number_that_a_loop_reads(tmp_path: Path) -> None:
    package = exported(scaled, "f32[]", "f32[100]", to=tmp_path)
    steps = package.signatures[0].variants[0].steps
    assert steps and all(isinstance(step, LaunchStep) for step in steps)
    x = R.random(100, F)
    (found,) = Library(tmp_path, package).run([F(1.5), x])
    np.testing.assert_allclose(found, scaled(jnp.float32(1.5), jnp.asarray(x)), rtol=1e-5)


def test_a_view_from_around_two_branches(tmp_path: Path) -> None:
    package = exported(viewed, "s32[]", "f32[6,50]", to=tmp_path)
    library = Library(tmp_path, package)
    x = R.random((6, 50), F)
    for i in (-1, 0, 1):
        (found,) = library.run([np.int32(i), x])
        np.testing.assert_allclose(found, viewed(jnp.int32(i), jnp.asarray(x)), rtol=1e-5)


def test_a_number_behind_a_barrier(tmp_path: Path) -> None:
    kept = xgpu.Options(keep_barriers=True)
    package = exported(kept_apart, "f32[]", "f32[100]", to=tmp_path, options=kept)
    x = R.random(100, F)
    (found,) = Library(tmp_path, package).run([F(1.5), x])
    np.testing.assert_allclose(found, kept_apart(jnp.float32(1.5), jnp.asarray(x)), rtol=1e-5)
