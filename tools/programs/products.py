"""Programs of matrix products that kernels compute by tiles: layouts, ragged sizes, types, and what follows them.

Operands are small whole numbers, so that sums are exact in any order.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu
from xgpu.dtypes import DType, parse_spec
from xgpu.tools.programs.base import Array, TestProgram

_OPTIONS = xgpu.Options(products="kernels")
_ROWS = ((1,), (1,))
"""Both operands lie along the contracted dimension."""


def _dot(x: Any, y: Any, contract: Any = ((1,), (0,)), batch: Any = ((), ()), result: str = "float32") -> Any:
    return lax.dot_general(x, y, (contract, batch), preferred_element_type=jnp.dtype(result))


def _scaled_rows(x: Any, y: Any, scale: Any) -> Any:
    return (_dot(x, y) * scale[:, None]).astype(x.dtype)


def _two_results(x: Any, y: Any) -> Any:
    product = _dot(x, y)
    return jnp.maximum(product, 0), product > 4


def _gated(x: Any, w: Any, v: Any) -> Any:
    return jax.nn.silu(_dot(x, w) / 64) * _dot(x, v)


def _biased_units(x: Any, w: Any, v: Any, b: Any, c: Any) -> Any:
    gate, up = _dot(x, w) + b, _dot(x, v) + c
    return (jax.nn.relu(gate) * up).astype(x.dtype), gate > 0


def _gated_groups(x: Any, w: Any, v: Any, sizes: Any) -> Any:
    return jax.nn.relu(lax.ragged_dot(x, w, sizes)) * lax.ragged_dot(x, v, sizes)


_ALONG: Any = lax.RaggedDotDimensionNumbers(  # type: ignore[no-untyped-call]
    (((1,), (2,)), ((), ())), [0], [0]
)
"""Rows in groups by matrices that lie in memory along the contracted dimension."""
_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "mk-kn": (_dot, ("bf16[130,72]", "bf16[72,136]")),
    "km-kn": (partial(_dot, contract=((0,), (0,))), ("bf16[72,136]", "bf16[72,136]")),
    "mk-nk": (partial(_dot, contract=_ROWS), ("f16[67,200]", "f16[97,200]")),
    "km-nk": (partial(_dot, contract=((0,), (1,))), ("f16[72,136]", "f16[99,72]")),
    "several-tiles": (jnp.matmul, ("bf16[300,256]", "bf16[256,520]")),
    "long-sums": (_dot, ("bf16[70,512]", "bf16[512,104]")),
    "few-rows": (jnp.matmul, ("bf16[5,512]", "bf16[512,256]")),
    "smallest": (_dot, ("bf16[2,8]", "bf16[8,8]")),
    "batch": (jnp.matmul, ("bf16[3,70,64]", "bf16[3,64,40]")),
    "batch-inside": (partial(_dot, contract=((2,), (2,)), batch=((1,), (1,))), ("f16[70,3,64]", "f16[40,3,64]")),
    "two-batches": (
        partial(_dot, contract=((3,), (3,)), batch=((0, 1), (0, 1))),
        ("bf16[2,3,70,64]", "bf16[2,3,40,64]"),
    ),
    "two-contracted": (partial(_dot, contract=((1, 2), (0, 1))), ("f16[70,8,16]", "f16[8,16,40]")),
    "bias-relu": (lambda x, y, b: jax.nn.relu(x @ y + b), ("bf16[130,64]", "bf16[64,136]", "bf16[136]")),
    "residual": (lambda x, y, z: x @ y + z, ("f16[130,64]", "f16[64,136]", "f16[130,136]")),
    "scaled-rows": (_scaled_rows, ("bf16[130,64]", "bf16[64,136]", "f32[130]")),
    "two-results": (_two_results, ("bf16[130,64]", "bf16[64,136]")),
    "gelu": (lambda x, y: jax.nn.gelu(_dot(x, y) / 64), ("bf16[130,64]", "bf16[64,136]")),
    "transposed": (lambda x, y: jnp.matmul(x, y).T, ("bf16[130,64]", "bf16[64,136]")),
    "gated": (_gated, ("bf16[130,64]", "bf16[64,136]", "bf16[64,136]")),
    "gated-biased": (_biased_units, ("bf16[200,136]", "bf16[136,72]", "bf16[136,72]", "f32[72]", "f32[72]")),
    "joined-batch": (lambda x, w, v: jnp.maximum(x @ w, x @ v), ("f16[3,70,64]", "f16[3,64,40]", "f16[3,64,40]")),
    "joined-four": (
        lambda x, *w: (x @ w[0]) * (x @ w[1]) + (x @ w[2]) * (x @ w[3]),
        ("bf16[70,64]", *["bf16[64,72]"] * 4),
    ),
    "ragged": (lax.ragged_dot, ("bf16[300,72]", "bf16[5,72,136]", "s32[5]")),
    "ragged-gated": (_gated_groups, ("bf16[300,72]", "bf16[5,72,40]", "bf16[5,72,40]", "s32[5]")),
    "ragged-nk": (
        partial(lax.ragged_dot_general, ragged_dot_dimension_numbers=_ALONG),
        ("f16[300,72]", "f16[5,40,72]", "s32[5]"),
    ),
    "e4m3": (partial(_dot, contract=_ROWS), ("f8e4m3fn[130,160]", "f8e4m3fn[72,160]")),
    "e5m2-e4m3": (partial(_dot, contract=_ROWS), ("f8e5m2[70,128]", "f8e4m3fn[72,128]")),
    "s8": (partial(_dot, contract=_ROWS, result="int32"), ("s8[130,160]", "s8[72,160]")),
    "s8-wraps": (partial(_dot, contract=_ROWS, result="int8"), ("s8[70,160]", "s8[72,160]")),
    "u8": (partial(_dot, contract=_ROWS, result="int32"), ("u8[130,160]", "u8[72,160]")),
    "tf32": (partial(_dot, contract=_ROWS), ("f32[130,72]", "f32[72,72]")),
}
_BY_WARPS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "odd-mk-kn": (_dot, ("bf16[67,65]", "bf16[65,91]")),
    "odd-km-kn": (partial(_dot, contract=((0,), (0,))), ("bf16[63,67]", "bf16[63,91]")),
    "odd-mk-nk": (partial(_dot, contract=_ROWS), ("f16[67,63]", "f16[91,63]")),
    "odd-km-nk": (partial(_dot, contract=((0,), (1,))), ("f16[63,67]", "f16[91,63]")),
    "rows-of-4-bytes": (_dot, ("bf16[66,62]", "bf16[62,90]")),
    "rows-of-8-bytes": (_dot, ("bf16[68,60]", "bf16[60,92]")),
    "odd-batch": (jnp.matmul, ("bf16[3,67,63]", "bf16[3,63,91]")),
    "odd-several-tiles": (_dot, ("bf16[300,63]", "bf16[63,301]")),
    "odd-bias-relu": (lambda x, y, b: jax.nn.relu(x @ y + b), ("bf16[67,63]", "bf16[63,91]", "bf16[91]")),
}
"""Products whose rows TMA cannot copy."""
EMITTERS = dict.fromkeys(_PROGRAMS, "product") | dict.fromkeys(_BY_WARPS, "warp_product")
"""The programs by name, each one kernel of this emitter."""


def _whole_numbers(specs: Sequence[str]) -> list[Array]:
    generator = np.random.default_rng(0)
    types = [parse_spec(spec) for spec in specs]
    return [_drawn(generator, dtype, shape) for dtype, shape in types]


def _drawn(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return operands, or sizes of groups, some of which are below none."""
    scale = 20 if dtype.hlo == "s32" else 1
    return (generator.integers(0 if dtype.hlo == "u8" else -4, 5, shape) * scale).astype(dtype.numpy)


def programs() -> Iterator[TestProgram]:
    """Yield the programs, each of which is one kernel on a GPU that has the instructions."""
    for name, (function, specs) in {**_PROGRAMS, **_BY_WARPS}.items():
        yield TestProgram(name, function, specs, partial(_whole_numbers, specs), options=_OPTIONS)
