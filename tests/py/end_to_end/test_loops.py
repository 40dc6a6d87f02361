"""Loops whose bodies are one kernel that makes all of the state: XLA must not take them for loops that change nothing.

In a process of its own, as what goes wrong never ends. ``XGPU_TEST_PLATFORM=cuda`` runs it on a GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """
import jax, jax.numpy as jnp, numpy as np, xgpu
from jax import lax

a, b = np.array([12, 30], np.int32), np.array([8, 9], np.int32)


def loop(body, *state):
    return lax.while_loop(lambda s: jnp.any(s[0] < 100), body, state)


def agree(function, theirs, *arrays):
    for got, expected in zip(jax.jit(function)(*arrays), jax.jit(theirs)(*arrays), strict=True):
        np.testing.assert_array_equal(got, expected)


step = lambda s: (s[0] + s[1], s[1] + 1, *s[2:])
"""
BODIES = {
    "whole": "f = lambda a, b: loop(step, a, b); agree(xgpu.jit(f), f, a, b)",
    "body": "agree(lambda a, b: loop(xgpu.jit(step), a, b), lambda a, b: loop(step, a, b), a, b)",
    "state that stays": "f = lambda a, b: loop(step, a, b, a); agree(xgpu.jit(f), f, a, b)",
    "constants": "f = lambda a: loop(step, a * 0, jnp.full(2, 3)); agree(xgpu.jit(f), f, a)",
    "exchanged": "f = lambda a, b: loop(lambda s: (s[1] + s[0], s[0] + 1), a, b); agree(xgpu.jit(f), f, a, b)",
    "gcd": "agree(lambda a, b: (xgpu.jit(jnp.gcd)(a, b),), lambda a, b: (jnp.gcd(a, b),), a, b)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_loop_of_one_kernel_ends(body: str) -> None:
    environment = os.environ | {"JAX_PLATFORMS": os.environ.get("XGPU_TEST_PLATFORM", "cpu")}
    root = Path(__file__).resolve().parents[3]
    program = [sys.executable, "-c", PRELUDE + body]
    result = subprocess.run(program, env=environment, cwd=root, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
