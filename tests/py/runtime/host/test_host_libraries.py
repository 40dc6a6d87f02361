"""Text that calls libraries of XLA's for the CPU runs, in a process where JAX has not used them: a crash otherwise."""

import subprocess
import sys
from ast import literal_eval

import numpy as np
import pytest

LOWER = """
import sys
import jax, jax.numpy as jnp

function = {"cholesky": lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(4)), "top_k": lambda a: jax.lax.top_k(a, 2)}
lowered = jax.jit(function[sys.argv[1]]).lower(jnp.eye(4))
print(lowered.as_text() if sys.argv[2] == "mlir" else lowered.compile().as_text())
"""
RUN = """
import sys
import numpy as np
import xgpu

compiled = xgpu.compile(sys.stdin.read())
for call in (compiled.reference, compiled.run, compiled):
    results = call(*compiled.random_inputs(0))
    print([np.asarray(result).tolist() for result in (results if isinstance(results, (list, tuple)) else [results])])
"""


def output(program: str, *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], input=given, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", ["mlir", "hlo"])
@pytest.mark.parametrize("name", ["cholesky", "top_k"])
def test_text_with_calls_of_libraries_runs(name: str, form: str) -> None:
    reference, run, called = output(RUN, given=output(LOWER, name, form)).splitlines()
    for results in (run, called):
        for got, expected in zip(literal_eval(results), literal_eval(reference), strict=True):
            # Sums of four f32 products in another order; indices are small.
            np.testing.assert_allclose(got, expected, rtol=1e-5)
