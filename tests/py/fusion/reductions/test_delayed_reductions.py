"""Sums that nobody waits for are computed by later kernels that read the same elements."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from xgpu.driver.compiler import plan_program
from xgpu.frontend.load import load_source
from xgpu.fusion.grouping.merging import delayed_reductions
from xgpu.interface.explanation import explain
from xgpu.runtime.compare import compare


def _norm(axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """A norm over some dimensions of images, with a factor and a bias for each of others."""

    def function(x: Any, factor: Any, bias: Any) -> Any:
        centred = x - x.mean(axes, keepdims=True)
        scale = lax.rsqrt((centred**2).mean(axes, keepdims=True) + 1e-5)
        return centred * scale * factor.reshape(shape) + bias.reshape(shape)

    return lambda x, factor, bias, change: jax.vjp(function, x, factor, bias)[1](change)


NORMS = {
    "layers": (_norm((3,), (-1,)), (64, 8, 8, 192), 192),
    "batches": (_norm((0, 1, 2), (-1,)), (32, 16, 16, 96), 96),
    "batches, channels second": (_norm((0, 2, 3), (-1, 1, 1)), (32, 64, 24, 24), 64),
    "instances": (_norm((2, 3), (-1, 1, 1)), (4, 32, 128, 128), 32),
    "instances, channels last": (_norm((1, 2), (-1,)), (4, 64, 64, 48), 48),
}


@pytest.mark.parametrize(("function", "shape", "channels"), NORMS.values(), ids=NORMS)
def test_gradients_of_norms(function: Any, shape: tuple[int, ...], channels: int) -> None:
    image, each = f"f32[{','.join(map(str, shape))}]", f"f32[{channels}]"
    program = xgpu.compile(function, image, each, each, image)
    inputs = program.random_inputs()
    for pair in zip(program.run(*inputs), program.reference(*inputs), strict=True):
        assert compare(*pair).agrees


@pytest.mark.parametrize(("norm", "arrays"), [("layers", 5), ("batches", 8), ("instances", 8)])
def test_what_comes_in_is_summed_with_its_products(norm: str, arrays: int) -> None:
    """Rows of a layer are held; others are read for a mean, a variance, sums of products and the result."""
    function, _, _ = NORMS[norm]
    image, each = {
        "layers": ("f32[64,32,32,1024]", "f32[1024]"),
        "batches": ("f32[64,56,56,128]", "f32[128]"),
        "instances": ("f32[8,64,256,256]", "f32[64]"),
    }[norm]
    program = xgpu.compile(function, image, each, each, image, target="sm_90a")
    size = 4
    for extent in image[4:-1].split(","):
        size *= int(extent)
    moved = sum(kernel.bytes for kernel in explain(program).kernels)
    assert moved / size < arrays + 0.1


def test_in_loops_what_is_overwritten_is_read_before() -> None:
    """The first sum could wait for the second one, were it not of a state that the loop replaces."""

    def step(_: Any, state: Any) -> Any:
        x, y, total = state
        total = total + x.mean(0)
        x = jnp.tanh(x + y.mean(0))
        products = (x * y).mean(0)
        return x, y * 0.5 + products, total + products

    def function(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 3, step, (x, y, jnp.zeros(x.shape[1:])))

    program = xgpu.compile(function, "f32[512,192]", "f32[512,192]")
    inputs = program.random_inputs()
    for pair in zip(program.run(*inputs), program.reference(*inputs), strict=True):
        assert compare(*pair).agrees


def _orthogonal(a: Any) -> Any:
    """Return the columns of an array made orthogonal one by one: each takes its products with those before."""
    made: list[Any] = []
    for number in range(a.shape[1]):
        column = a[:, number]
        for other in made:
            column = column - (other @ column) * other
        made.append(column / jnp.linalg.norm(column))
    return jnp.stack(made, 1)


def test_what_may_wait_for_what_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many kernels ask: all of these sums read the same arrays, and most of what follows them does."""
    asked, heroes_of, read = Counter[str](), delayed_reductions.heroes_of, delayed_reductions.values_read

    def counting(value: Any, group: Any, grouping: Any) -> Any:
        asked["heroes"] += 1
        return heroes_of(value, group, grouping)

    def reading(group: Any, grouping: Any) -> Any:
        asked["reads"] += 1
        return read(group, grouping)

    monkeypatch.setattr(delayed_reductions, "heroes_of", counting)
    monkeypatch.setattr(delayed_reductions, "values_read", reading)
    source = load_source(_orthogonal, ("f32[128,17]",))
    plan_program(source.module)
    operations = str(source.module).count("stablehlo.")
    assert 0 < asked["heroes"] <= operations
    assert 0 < asked["reads"] <= operations
