"""What loops read: found once, whatever asks for it."""

from collections import Counter

import jax
import jax.numpy as jnp
import pytest

from xgpu.driver.compiler import plan_program
from xgpu.frontend.load import load_source
from xgpu.fusion.grouping import groups


@pytest.mark.parametrize("arrays", [4, 12, 32])
def test_bodies_of_loops_are_not_gone_through_for_each_result(monkeypatch, arrays):
    """A loop that is one kernel stores all of its results, of which merging asks what they are made of."""
    asked, captured = Counter[str](), groups.captured

    def counting(op):
        asked[op.name] += 1
        return captured(op)

    def function(xs, w):
        return jax.lax.fori_loop(0, 10, lambda i, xs: [jnp.sin(x) * i + w for x in xs], xs)

    monkeypatch.setattr(groups, "captured", counting)
    given = jax.ShapeDtypeStruct((1000,), "float32")
    plan_program(load_source(function, ([given] * arrays, given)).module)
    assert asked["stablehlo.while"] == 1
