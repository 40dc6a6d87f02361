"""Programs of windows: pooling, running sums, padding, strides and dilations of every kind."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xgpu.tools.programs.base import TestProgram


def _max_pool(x: Any, size: int, stride: int, padding: str) -> Any:
    lowest = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else np.iinfo(x.dtype).min
    window = (1, size, size, 1)
    return lax.reduce_window(x, x.dtype.type(lowest), lax.max, window, (1, stride, stride, 1), padding)


def _average_pool(x: Any) -> Any:
    window, strides = (1, 3, 2, 1), (1, 2, 1, 1)
    total = lax.reduce_window(x, 0.0, lax.add, window, strides, "SAME")
    return total / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, window, strides, "SAME")


def _general(x: Any, **parameters: Any) -> Any:
    return lax.reduce_window(x, jnp.asarray(0, x.dtype), lax.add, **parameters)


def _several(x: Any, i: Any) -> Any:
    """The largest value of each window, and an index that goes with it."""

    def larger(left: Any, right: Any) -> Any:
        first = (left[0] > right[0]) | ((left[0] == right[0]) & (left[1] < right[1]))
        return jnp.where(first, left[0], right[0]), jnp.where(first, left[1], right[1])

    inits = jnp.asarray(-jnp.inf, x.dtype), jnp.int32(2**31 - 1)
    return lax.reduce_window((x, i), inits, larger, (3, 2), (2, 1), ((1, 1), (0, 1)))


_EVERYTHING = {
    "window_dimensions": (3, 2),
    "window_strides": (2, 3),
    "padding": ((4, 2), (-1, 5)),
    "base_dilation": (3, 2),
    "window_dilation": (2, 4),
}

_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "max-pool": (partial(_max_pool, size=2, stride=2, padding="VALID"), ("f32[2,8,10,3]",)),
    "max-pool-odd": (partial(_max_pool, size=3, stride=2, padding="SAME"), ("f32[2,9,11,3]",)),
    "max-pool-bf16": (partial(_max_pool, size=3, stride=1, padding="SAME"), ("bf16[1,9,11,5]",)),
    "max-pool-u8": (partial(_max_pool, size=3, stride=2, padding="SAME"), ("u8[1,9,11,5]",)),
    "average-pool": (_average_pool, ("f32[2,9,11,3]",)),
    "average-pool-f16": (_average_pool, ("f16[2,9,11,3]",)),
    "dilated": (partial(_general, **_EVERYTHING), ("f32[7,9]",)),
    "dilated-s64": (partial(_general, **_EVERYTHING), ("s64[7,9]",)),
    "in-the-padding": (partial(_general, window_dimensions=(2,), window_strides=(1,), padding=((3, 3),)), ("s32[3]",)),
    "of-one-element": (
        partial(_general, window_dimensions=(1, 1), window_strides=(1, 1), padding=((1, 0), (0, 2))),
        ("f32[3,4]",),
    ),
    "of-nothing": (partial(_general, window_dimensions=(2,), window_strides=(1,), padding=((2, 1),)), ("f32[0]",)),
    "several-operands": (_several, ("f32[9,7]", "s32[9,7]")),
    "of-a-computed-operand": (lambda x: _max_pool(jnp.exp(x) * 2, 2, 1, "SAME") - x, ("f32[1,6,7,2]",)),
    "of-a-window": (lambda x: _max_pool(_average_pool(x), 2, 1, "VALID"), ("f32[1,9,7,2]",)),
    "gradient-of-max-pool": (
        jax.grad(lambda x: jnp.sum(_max_pool(x, 3, 2, "SAME") ** 2)),
        ("f32[2,9,11,3]",),
    ),
    "gradient-of-average-pool": (jax.grad(lambda x: jnp.sum(_average_pool(x) ** 2)), ("f32[1,9,7,2]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
