"""Branches that are known when a program is compiled leave no branch, and kernels reach through them."""

import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

PROGRAMS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "one platform": (lambda x: jnp.diagonal(x) + 1, 0),
    "an index": (lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], x), 0),
    "an index below": (lambda x: lax.switch(jnp.int32(-3), [jnp.sin, jnp.cos], x), 0),
    "a predicate": (lambda x: lax.cond(True, jnp.sin, jnp.cos, x), 0),
    "in a branch": (lambda x: lax.cond(x[0, 0] > 0, lambda y: jnp.diagonal(y) * 2, lambda y: y[0], x), 1),
}
"""Programs, and how many branches remain: whose index is computed."""


@pytest.mark.parametrize(("function", "left"), PROGRAMS.values(), ids=PROGRAMS)
def test_nothing_known_is_left_to_choose(function: Callable[[Any], Any], left: int) -> None:
    program = xgpu.compile(function, "f32[24,24]")
    assert len(re.findall(r'"stablehlo\.(case|if)"', program.ir("stablehlo"))) == left
    assert len(program.kernels) == 1
    (x,) = program.random_inputs(0)
    np.testing.assert_allclose(program.run(x)[0], function(x), rtol=2e-6)
