"""The plans of programs that everybody runs: which kernels, built around what, and what is left to XLA.

Also where it is the body of a loop, or a branch, that everybody runs.
"""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.driver.compiler import plan_program
from xgpu.frontend import from_jax


def _layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _cross_entropy(logits: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1, mode="clip")
    return -chosen.mean()


def _adam(parameters: Any, gradients: Any, moments: Any) -> Any:
    def update(p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    return jax.tree.map(update, parameters, gradients, *moments)


def _rotary(x: Any) -> Any:
    position, half = jnp.arange(x.shape[0]), x.shape[-1] // 2
    angle = position[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    sine, cosine = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def _batch_norm(x: Any, scale: Any, shift: Any, running: Any) -> Any:
    mean, square = x.mean((0, 1, 2)), (x * x).mean((0, 1, 2))
    variance = square - mean * mean
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift, 0.9 * running + 0.1 * mean


_TREE = {"a": "f32[64,128]", "b": "f32[128]", "c": "f32[64,128]"}

PLANS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "softmax": (jax.nn.softmax, ("f32[256,1000]",), ["rows"]),
    "layer norm": (
        _layer_norm,
        ("f32[256,1000]", "f32[1000]", "f32[1000]"),
        ["rows"],
    ),
    "layer norm, gradient": (
        jax.grad(lambda *a: (_layer_norm(*a) ** 2).sum(), argnums=(0, 1, 2)),
        ("f32[256,1000]", "f32[1000]", "f32[1000]"),
        ["rows", "reduce_column"],
    ),
    "cross-entropy": (_cross_entropy, ("f32[256,1000]", "s32[256]"), ["rows", "reduce_row"]),
    "cross-entropy, gradient": (
        jax.grad(_cross_entropy),
        ("f32[256,1000]", "s32[256]"),
        ["rows"],
    ),
    "adam": (_adam, (_TREE, _TREE, (_TREE, _TREE)), ["parts"]),
    "rotary embedding": (_rotary, ("f32[128,8,64]",), ["concatenate"]),
    "batch norm": (_batch_norm, ("f32[8,16,16,64]", *["f32[64]"] * 3), ["columns"]),
}


@pytest.mark.parametrize("name", PLANS)
def test_kernels(name: str) -> None:
    function, specs, expected = PLANS[name]
    text = str(plan_program(from_jax(function, specs).module)["fusions"])
    emitters = re.findall(r'func\.func private @\w*fusion_\d+\(.*xgpu\.emitter = "(\w+)"', text)
    assert emitters == expected
    main = text[text.index("func.func @main") :]
    assert "stablehlo." not in main


def _descent(parameters: Any, gradients: Any, first: Any, second: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        updated = _adam(state[0], gradients, state[1:])
        return jax.tree.transpose(jax.tree.structure(parameters), jax.tree.structure((0, 0, 0)), updated)

    return lax.fori_loop(0, 10, step, (parameters, first, second))


def _layers(x: Any, weights: Any, scale: Any, shift: Any) -> Any:
    return lax.scan(lambda x, w: (_layer_norm(jnp.tanh(x @ w), scale, shift), x.sum()), x, weights)


def _power_iteration(matrix: Any, vector: Any) -> Any:
    def step(_: Any, v: Any) -> Any:
        product = matrix @ v
        return product / jnp.linalg.norm(product)

    return lax.fori_loop(0, 50, step, vector)


def _until_small(x: Any) -> Any:
    return lax.while_loop(lambda x: jnp.abs(x).max() > 1e-3, lambda x: x - 0.1 * jnp.sin(x) * x.mean(), x)


def _decoded(x: Any, keys: Any, start: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        x, keys = state
        keys = lax.dynamic_update_slice(keys, jnp.tanh(x)[None], (start + i, 0))
        return jax.nn.softmax(keys @ x) @ keys, keys

    return lax.fori_loop(0, 10, step, (x, keys))


WHILE = "stablehlo.while"

BODIES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[Any]]] = {
    "layers": (
        _layers,
        ("f32[64,256]", "f32[6,256,256]", "f32[256]", "f32[256]"),
        [
            "stablehlo.broadcast_in_dim",
            [
                WHILE,
                [],
                [
                    *("stablehlo.dynamic_slice", "stablehlo.reshape", "stablehlo.dot_general"),
                    *("parts", "update_slice"),
                ],
            ],
        ],
    ),
    "adam": (_descent, (_TREE,) * 4, ["recurrence"]),
    "power iteration": (
        _power_iteration,
        ("f32[512,512]", "f32[512]"),
        [[WHILE, [], ["reduce_row", "rows"]]],
    ),
    "until small": (
        _until_small,
        ("f32[4096,128]",),
        [[WHILE, ["stablehlo.abs", "stablehlo.reduce"], ["reduce_row", "reduce_row", "loop"]]],
    ),
    "decoding": (
        _decoded,
        ("f32[64]", "f32[512,64]", "s32[]"),
        [[WHILE, [], ["update_slice", "reduce_row", "rows", "reduce_column"]]],
    ),
    "counts": (
        lambda x, i: lax.fori_loop(0, 5, lambda k, x: x.at[i + k].add(1.0), x),
        ("f32[1000]", "s32[300]"),
        [[WHILE, [], ["scatter"]]],
    ),
    "sums": (
        lambda x: lax.fori_loop(0, 5, lambda _, x: jnp.cumsum(x * 0.5, 1), x),
        ("f32[128,2048]",),
        [[WHILE, [], ["scan_row"]]],
    ),
    "branches": (
        lambda p, x: lax.cond(p, jax.nn.softmax, lambda x: jnp.cumsum(x, 0), x),
        ("pred[]", "f32[4096,4096]"),
        [["stablehlo.case", ["scan_column"], ["rows"]]],
    ),
    "small branches": (
        lambda p, x: lax.cond(p, lambda x: x - jnp.max(x, 1, keepdims=True), lambda x: x * 2, x),
        ("pred[]", "f32[256,1000]"),
        ["rows"],
    ),
}
"""Programs with what each block runs: emitters, what XLA does to arrays, and blocks of loops and branches in a list."""


@pytest.mark.parametrize("name", BODIES)
def test_kernels_of_bodies(name: str) -> None:
    function, specs, expected = BODIES[name]
    module = plan_program(from_jax(function, specs).module)["fusions"]
    functions = {ir.StringAttr(op.attributes["sym_name"]).value: op.operation for op in module.body.operations}
    assert _runs(functions["main"].regions[0].blocks[0], functions) == expected


def _is_array(value: ir.Value) -> bool:
    return ir.RankedTensorType(value.type).rank > 0


def _runs(block: ir.Block, functions: dict[str, ir.Operation]) -> list[Any]:
    found: list[Any] = []
    *operations, _ = block.operations
    for op in operations:
        name = op.operation.name
        if name == "func.call":
            callee = functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
            found.append(ir.StringAttr(callee.attributes[attributes.EMITTER]).value)
        elif name in (WHILE, "stablehlo.case"):
            found.append([name, *(_runs(region.blocks[0], functions) for region in op.regions)])
        elif name != "stablehlo.constant" and any(_is_array(value) for value in (*op.operands, *op.results)):
            found.append(name)
    return found
