"""Programs that put arrays together and take them apart, of shapes that every way of walking them is chosen for."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xgpu.tools.programs.base import ALL, Array, TestProgram


def _join(*arrays: Any, axis: int = 1) -> Any:
    return lax.concatenate(arrays, axis)


def _rotate(x: Any, y: Any, cosine: Any, sine: Any) -> Any:
    return -jnp.concatenate([x * cosine - y * sine, y * cosine + x * sine], -1)


def _two_results(x: Any, y: Any) -> Any:
    joined = jnp.concatenate([x, y * 2], 1)
    return joined, (joined + 1).astype(jnp.bfloat16)


def _two_heroes(x: Any, y: Any) -> Any:
    return jnp.concatenate([x, y], 1) * jnp.concatenate([y[:, :-1], x, x[:, :1]], 1), jnp.concatenate([x + y, x - y], 1)


def _pair(x: Any, y: Any) -> Any:
    joined = jnp.concatenate([x, y], 1)
    return joined, joined[:, ::-1] + joined


def _split_and_more(x: Any) -> Any:
    first, second, third = jnp.split(jnp.sin(x), [100, 300], 1)
    return first, second * 2, third[:, 0], jnp.abs(third)


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "direct-equal": (_join, ("bf16[1001,64]", "bf16[1001,64]")),
    "direct-sectors": (_join, ("f32[301,24]", "f32[301,40]", "f32[301,8]")),
    "direct-half-vectors": (_join, ("f32[1001,10]", "f32[1001,10]", "f32[1001,10]")),
    "direct-large": (_join, ("bf16[20011,64]", "bf16[20011,64]")),
    "direct-one-row": (partial(_join, axis=0), ("f32[103]", "f32[301]", "f32[5]")),
    "loop-one-row": (partial(_join, axis=0), ("f32[100003]", "f32[300001]", "f32[5]")),
    "loop-odd": (_join, ("bf16[101,8191]", "bf16[101,513]")),
    "direct-one-row-many": (partial(_join, axis=0), tuple(f"bf16[{n}]" for n in range(1, 30))),
    "direct-rank-8": (
        partial(_join, axis=5),
        ("f32[2,3,1,2,3,2,2,3]", "f32[2,3,1,2,3,2,2,3]", "f32[2,3,1,2,3,2,2,3]"),
    ),
    "tiled-odd": (_join, ("f32[4096,100]", "f32[4096,63]")),
    "tiled-odd-bf16": (_join, ("bf16[4099,100]", "bf16[4099,63]")),
    "tiled-odd-s8": (_join, ("s8[1021,9]", "s8[1021,1]", "s8[1021,23]")),
    "tiled-many": (_join, ("f32[1031,3]",) * 24),
    "tiled-three": (lambda r, g, b: jnp.stack([r, g, b], -1), ("u8[100003]",) * 3),
    "tiled-pred": (partial(_join, axis=2), ("pred[3,50,31]", "pred[3,50,64]")),
    "tiled-complex": (_join, ("c64[77,9]", "c64[77,4]", "c64[77,2]")),
    "tiled-c128": (_join, ("c128[77,1]", "c128[77,2]")),
    "tiled-f8": (_join, ("f8e4m3fn[777,5]", "f8e4m3fn[777,6]")),
    "rotate": (_rotate, ("bf16[333,64]",) * 4),
    "rotate-odd": (_rotate, ("f32[333,33]",) * 4),
    "two-results": (_two_results, ("f32[333,41]", "f32[333,50]")),
    "two-heroes": (_two_heroes, ("f32[333,40]", "f32[333,40]")),
    "at-two-places": (_pair, ("f32[333,41]", "f32[333,50]")),
    "inside-a-reduction": (lambda x, y: jnp.sum(jnp.concatenate([x, y], 1), 1), ("s32[33,41]", "s32[33,50]")),
    "nested": (lambda *a: jnp.concatenate([x + i for i, x in enumerate(a)], 0), ("s32[17,5]",) * 20),
    "split": (lambda x: jnp.split(x, [100, 300], 1), ("f32[333,500]",)),
    "split-vectors": (lambda x: jnp.split(x, [96, 320], 1), ("bf16[3333,512]",)),
    "split-computed": (_split_and_more, ("f32[333,500]",)),
    "split-packed": (lambda x: jnp.split(x, [10, 30], 1), ("s4[333,50]",)),
    "split-complex": (lambda x: jnp.split(x, [10, 30]), ("c64[333,5]",)),
    "gated": (lambda x: (x[:, :200] * lax.logistic(x[:, 200:400]), x[:, 400:]), ("bf16[77,500]",)),
    "windows": (lambda x: (x[:-1], x[2:], -x[1:3]), ("f32[100003]",)),
    "windows-of-rows": (lambda x: (x[:, :-1], x[:, 2:], x[1:, 1:]), ("f32[333,64]",)),
    "padded-columns": (jax.grad(lambda x: jnp.sum(jnp.sin(x[:, 0]) * x[:, 2] + x[:, 5] * x[:, 0])), ("f32[333,6]",)),
    "padded-strides": (jax.grad(lambda x: jnp.sum(x[:, ::2] * jnp.cos(x[:, 1::2]))), ("f32[333,64]",)),
    "stack-of-columns": (
        lambda x: jnp.stack([jnp.stack([x[:, i] - x[:, j] for j in range(3)], 1) for i in range(3)], 2),
        ("f32[333,3]",),
    ),
    "even-and-odd": (lambda x: (x[:, ::2], x[:, 1::2]), ("f32[333,65]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs, and those of every type with both sizes that fit vectors and sizes that do not."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
    # XLA on the CPU does not concatenate packed arrays.
    yield TestProgram("packed", _join, ("s4[99,8]", "s4[99,34]"), expected=_joined)
    yield TestProgram("packed-odd", _join, ("u4[99,7]", "u4[99,34]"), expected=_joined)
    for dtype in ALL:
        yield TestProgram(f"types-{dtype}", _every_way, (f"{dtype}[37,33]", f"{dtype}[37,32]", f"{dtype}[37,32]"))


def _joined(arrays: Sequence[Array]) -> list[Array]:
    return [np.concatenate(arrays, 1)]


def _every_way(x: Any, y: Any, z: Any) -> Any:
    return _join(x, y), _join(y, z), (x[:, :5], x[:, 5:])
