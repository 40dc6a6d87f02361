"""The work to decide on splits of reductions: what they are computed from is followed where that matters, once."""

from collections import Counter

import jax.numpy as jnp

from xgpu.costs import traffic
from xgpu.driver.compiler import plan_program
from xgpu.frontend.load import load_source
from xgpu.passes.prepare.reductions import split_reductions


def test_bytes_are_followed_for_reductions_that_may_be_split_alone(monkeypatch):
    """One of many results has blocks enough, whatever its threads compute."""
    followed, bytes_touched = Counter[str](), split_reductions.bytes_touched

    def counting(values, slices=None):
        followed["reductions"] += 1
        return bytes_touched(values, slices)

    monkeypatch.setattr(split_reductions, "bytes_touched", counting)
    plan_program(load_source(lambda x: jnp.sum(jnp.sin(x), 1), ("f32[65536,256]",)).module)
    assert followed["reductions"] == 0
    plan_program(load_source(lambda x: jnp.sum(jnp.sin(x)), ("f32[65536,256]",)).module)
    assert followed["reductions"] > 0


def test_what_many_reductions_are_computed_from_is_looked_at_once(monkeypatch):
    """Each of the sums of a chain's values has all values before it in its slice."""
    looked_at, made = Counter[str](), traffic.Made.__init__

    def counting(self, *arguments):
        looked_at["values"] += 1
        made(self, *arguments)

    def function(x):
        sums = []
        for _ in range(32):
            x = jnp.sin(x) * 0.5
            sums.append(jnp.sum(x))
        return sums

    monkeypatch.setattr(traffic.Made, "__init__", counting)
    source = load_source(function, ("f32[4096]",))
    operations = str(source.module).count("stablehlo.")
    plan_program(source.module)
    assert 0 < looked_at["values"] <= 2 * operations
