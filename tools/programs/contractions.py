"""Programs of dot products and convolutions, computed as plain loops: any dimensions, groups and types."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from xgpu.tools.programs.base import TestProgram


def _dot(x: Any, y: Any, contract: Any, batch: Any = ((), ()), result: str | None = None) -> Any:
    with jax.enable_x64(True):
        element = None if result is None else jnp.dtype(result)
        return lax.dot_general(x, y, (contract, batch), preferred_element_type=element)


def _matmul(x: Any, y: Any, result: str | None = None) -> Any:
    return _dot(x, y, ((1,), (0,)), result=result)


def _conv(x: Any, kernel: Any, **parameters: Any) -> Any:
    parameters = {"window_strides": (1, 1), "padding": "VALID", **parameters}
    return lax.conv_general_dilated(x, kernel, **parameters)


_NHWC = ("NHWC", "HWIO", "NHWC")
_EVERYTHING = {
    "window_strides": (2, 3),
    "padding": ((3, 2), (1, 4)),
    "lhs_dilation": (2, 3),
    "rhs_dilation": (3, 2),
}

_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "dot-vectors": (jnp.dot, ("f32[31]", "f32[31]")),
    "dot": (_matmul, ("f32[17,31]", "f32[31,9]")),
    "dot-transposed": (partial(_dot, contract=((0,), (1,))), ("f32[31,17]", "f32[9,31]")),
    "dot-batched": (partial(_dot, contract=((1,), (2,)), batch=((0,), (1,))), ("f32[3,31,17]", "f32[9,3,31]")),
    "dot-general": (
        partial(_dot, contract=((4, 1), (0, 3)), batch=((3, 0), (2, 4))),
        ("f32[2,5,3,4,6]", "f32[6,7,4,5,2]"),
    ),
    "dot-outer": (partial(_dot, contract=((), ())), ("f32[7]", "f32[2,5]")),
    "dot-of-nothing": (_matmul, ("f32[3,0]", "f32[0,5]")),
    "dot-with-itself": (lambda x: _matmul(x * 2, x.T * 2), ("f32[9,31]",)),
    "dot-of-one-value": (lambda x: _dot(x + 1, x + 1, ((1,), (1,))), ("f32[9,31]",)),
    "dot-f16": (_matmul, ("f16[17,31]", "f16[31,9]")),
    "dot-bf16": (_matmul, ("bf16[17,31]", "bf16[31,9]")),
    "dot-bf16-to-f32": (partial(_matmul, result="float32"), ("bf16[17,31]", "bf16[31,9]")),
    "dot-f64": (_matmul, ("f64[17,31]", "f64[31,9]")),
    "dot-s8": (_matmul, ("s8[17,31]", "s8[31,9]")),
    "dot-s8-to-s32": (partial(_matmul, result="int32"), ("s8[17,31]", "s8[31,9]")),
    "dot-u8-to-s32": (partial(_matmul, result="int32"), ("u8[17,31]", "u8[31,9]")),
    "dot-s64": (_matmul, ("s64[17,33]", "s64[33,9]")),
    "dot-u32": (_matmul, ("u32[17,33]", "u32[33,9]")),
    "dot-pred": (_matmul, ("pred[17,5]", "pred[5,9]")),
    "dot-pred-to-s32": (partial(_matmul, result="int32"), ("pred[17,33]", "pred[33,9]")),
    "dot-then-softmax": (
        lambda q, k, v: jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)), v),
        ("f32[2,7,5]", "f32[2,9,5]", "f32[2,9,5]"),
    ),
    "mlp": (lambda x, w, v: jax.nn.relu(x @ w) @ v, ("f32[5,17]", "f32[17,31]", "f32[31,3]")),
    "conv": (_conv, ("f32[2,3,9,11]", "f32[4,3,3,2]")),
    "conv-nhwc": (partial(_conv, padding="SAME", dimension_numbers=_NHWC), ("f32[2,9,11,3]", "f32[3,3,3,5]")),
    "conv-1d": (partial(_conv, window_strides=(2,), padding=((1, 2),)), ("f32[2,3,19]", "f32[4,3,5]")),
    "conv-3d": (partial(_conv, window_strides=(1, 2, 1), padding="SAME"), ("f32[1,2,4,5,6]", "f32[3,2,2,3,2]")),
    "conv-general": (partial(_conv, **_EVERYTHING), ("f32[2,3,7,5]", "f32[4,3,3,2]")),
    "conv-depthwise": (partial(_conv, padding="SAME", feature_group_count=6), ("f32[2,6,9,7]", "f32[12,1,3,3]")),
    "conv-feature-groups": (partial(_conv, feature_group_count=2), ("f32[2,6,9,7]", "f32[4,3,3,3]")),
    "conv-batch-groups": (partial(_conv, batch_group_count=2), ("f32[4,3,9,7]", "f32[6,3,3,3]")),
    "conv-bf16": (partial(_conv, padding="SAME"), ("bf16[1,5,9,7]", "bf16[4,5,3,3]")),
    "conv-f16": (partial(_conv, padding="SAME"), ("f16[1,5,9,7]", "f16[4,5,3,3]")),
    "conv-f64": (partial(_conv, padding="SAME"), ("f64[1,5,9,7]", "f64[4,5,3,3]")),
    "conv-s32": (partial(_conv, padding="SAME"), ("s32[1,5,9,7]", "s32[4,5,3,3]")),
    "conv-s8-to-s32": (
        partial(_conv, padding="SAME", preferred_element_type=jnp.int32),
        ("s8[1,5,9,7]", "s8[4,5,3,3]"),
    ),
    "conv-of-a-computed-operand": (
        lambda x, k: jax.nn.relu(_conv(x * 2, k + 1, padding="SAME")),
        ("f32[1,3,9,7]", "f32[4,3,3,3]"),
    ),
    "conv-transposed": (lambda x, k: lax.conv_transpose(x, k, (2, 3), "SAME"), ("f32[2,5,7,3]", "f32[3,3,3,4]")),
    "conv-gradients": (
        jax.grad(lambda x, k: jnp.sum(_conv(x, k, window_strides=(2, 1), padding="SAME") ** 2), (0, 1)),
        ("f32[2,3,9,7]", "f32[4,3,3,3]"),
    ),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
