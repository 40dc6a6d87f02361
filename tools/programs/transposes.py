"""Programs around transposes: every type, odd sizes, ranks up to 8, prologues, epilogues, several results."""

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
from jax import lax

from xgpu.tools.programs.base import ALL, TestProgram

_TYPES = (*ALL, "c64", "c128", "s4", "u4", "s2", "f8e4m3fn", "f8e5m2", "f4e2m1fn")
_SIZES = ((16, 16), (31, 33), (32, 64), (64, 32), (127, 129), (128, 256), (1, 37), (1023, 17), (16, 1025), (40, 0))


def _permuted(*permutation: int) -> Callable[[Any], Any]:
    return lambda x: lax.transpose(x, permutation)


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "021": (_permuted(0, 2, 1), ("f32[3,65,40]",)),
    "102-short-groups": (_permuted(1, 0, 2), ("f32[33,37,3]",)),
    "102-short-groups-s8": (_permuted(1, 0, 2), ("s8[33,37,5]",)),
    "102-pairs-bf16": (_permuted(1, 0, 2), ("bf16[64,96,2]",)),
    "102-long-groups": (_permuted(1, 0, 2), ("bf16[9,7,128]",)),
    "120": (_permuted(1, 2, 0), ("bf16[40,8,24]",)),
    "201": (_permuted(2, 0, 1), ("f64[40,6,30]",)),
    "210": (_permuted(2, 1, 0), ("f32[33,5,34]",)),
    "3210": (_permuted(3, 2, 1, 0), ("f16[20,3,2,24]",)),
    "0213": (_permuted(0, 2, 1, 3), ("f32[2,20,24,2]",)),
    "narrow": (_permuted(1, 0), ("f32[8,2000]",)),
    "rank-8": (_permuted(7, 0, 6, 1, 5, 2, 4, 3), ("f32[4,2,3,1,2,5,1,24]",)),
    "epilogue": (lambda x, y: jnp.tanh(x.T) * y + 1, ("f32[70,50]", "f32[50,70]")),
    "epilogue-function": (lambda x: lax.bessel_i0e(x.T), ("f32[70,50]",)),
    "epilogue-reshape": (lambda x: (x.T * 2).reshape(25, 2, 70), ("f32[70,50]",)),
    "epilogue-to-bf16": (lambda x: x.T.astype(jnp.bfloat16), ("f32[72,56]",)),
    "prologue": (lambda x, y: (x * y + 1).T, ("bf16[70,50]", "bf16[70,50]")),
    "prologue-slice": (lambda x: x[3:, 1:40].T, ("f32[70,50]",)),
    "prologue-pad": (lambda x: jnp.pad(x, ((1, 2), (3, 4))).T, ("f32[30,50]",)),
    "several": (lambda x, y: x.T + jnp.exp(y.T), ("f32[70,50]", "f32[70,50]")),
    "several-types": (lambda x, y: x.T + y.T.astype(jnp.float32), ("f32[70,50]", "s8[70,50]")),
    "several-results": (lambda x, y: (x.T * 2, y.T + x.T, y.T > 0), ("f32[40,50]", "f32[40,50]")),
    "with-side-output": (lambda x: (jnp.exp(x), jnp.exp(x).T), ("f32[40,50]",)),
    "and-itself": (lambda x: x + x.T, ("f32[65,65]",)),
    "of-a-transpose": (lambda x: lax.transpose(x + 1, (1, 0, 2)).swapaxes(1, 2), ("f32[17,18,19]",)),
    "of-a-sum": (lambda x: jnp.sum(x, 0).T * 2, ("f32[12,33,34]",)),
    "sum-of": (lambda x: jnp.sum(x.T, 0), ("f32[33,34]",)),
    "both-ways": (lambda x: (x.T + 1).T * 2, ("f32[33,34]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for type_ in _TYPES:
        yield TestProgram(type_, _permuted(1, 0), (f"{type_}[66,36]",))
    for type_ in ("f32", "bf16", "s8"):
        for rows, columns in _SIZES:
            yield TestProgram(f"{type_}-{rows}x{columns}", _permuted(1, 0), (f"{type_}[{rows},{columns}]",))
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
