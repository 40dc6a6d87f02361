"""Programs that move data: slices, pads, concatenations, reshapes, gathers and dynamic slices, of odd shapes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xgpu.tools.programs.base import TestProgram


def _pad(x: Any, config: tuple[tuple[int, int, int], ...]) -> Any:
    return lax.pad(x, jnp.asarray(7, x.dtype), config)


def _bitcast(x: Any, target: str) -> Any:
    with jax.enable_x64(True):
        return lax.bitcast_convert_type(x, jnp.dtype(target))


def _rows(table: Any, index: Any, mode: str) -> Any:
    return table.at[index].get(mode=mode)


def _general_gather(x: Any, index: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(1,), start_index_map=(2, 0))
    return lax.gather(x, index, numbers, slice_sizes=(2, 1, 3), mode="clip")


def _dynamic_slice(x: Any, i: Any, j: Any) -> Any:
    return lax.dynamic_slice(x, (i[0], j[0]), (5, 3))


def _dynamic_update(x: Any, update: Any, i: Any, j: Any) -> Any:
    return lax.dynamic_update_slice(x, update, (i[0], j[0]))


_TABLE = np.arange(40001, dtype=np.float32) % 257
"""Too large for the constant memory of a GPU."""

_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "iota": (lambda: jnp.arange(1001) * 3, ()),
    "iota-2d": (lambda: lax.broadcasted_iota(jnp.float32, (7, 13), 1), ()),
    "iota-wraps": (lambda: lax.iota(jnp.int8, 300), ()),
    "constant": (lambda: jnp.asarray([[1.5, -2.0, 0.25], [3.0, 4.0, -0.0]]), ()),
    "constant-at-reversed-indices": (
        lambda x: x + jnp.asarray([[1, 2, 3], [4, 5, 6]], jnp.int32)[::-1, ::-1],
        ("s32[2,3]",),
    ),
    "constant-pred": (lambda x: jnp.where(jnp.asarray([True, False, True, True, False]), x, -x), ("f32[5]",)),
    "broadcast-scalar": (lambda x: jnp.broadcast_to(x, (3, 5)), ("f32[]",)),
    "broadcast-row": (lambda x, y: x + y, ("f32[33,65]", "f32[65]")),
    "broadcast-column": (lambda x, y: x + y[:, None], ("bf16[33,65]", "bf16[33]")),
    "reshape": (lambda x: jnp.reshape(x * 2, (35, 4, 3)) + 1, ("s32[7,5,12]",)),
    "reshape-to-scalar": (lambda x: jnp.reshape(x, ()), ("f32[1,1,1]",)),
    "transpose": (lambda x: jnp.transpose(x, (2, 0, 1)) * 2, ("f32[5,7,11]",)),
    "transpose-and-itself": (lambda x: x + x.T, ("f64[37,37]",)),
    "slice": (lambda x: x[2:31:3, 1:], ("f32[33,17]",)),
    "slice-of-one": (lambda x: x[4:5, 3:4], ("u8[33,17]",)),
    "reverse": (lambda x: jnp.flip(x, (0, 2)), ("s16[5,6,7]",)),
    "pad": (partial(_pad, config=((1, 2, 0), (3, 0, 0))), ("f32[9,14]",)),
    "pad-interior": (partial(_pad, config=((1, 2, 3), (0, 1, 1))), ("s32[9,14]",)),
    "pad-negative": (partial(_pad, config=((-1, -2, 0), (-3, 4, 2))), ("bf16[9,14]",)),
    "pad-to-empty": (partial(_pad, config=((-5, -4, 0),)), ("f32[9]",)),
    "pad-of-empty": (partial(_pad, config=((2, 3, 0), (1, 1, 0))), ("f32[0,4]",)),
    "concatenate": (lambda x, y, z: jnp.concatenate([x, y, z], 1), ("f32[5,3]", "f32[5,1]", "f32[5,13]")),
    "concatenate-itself": (lambda x: jnp.concatenate([x, -x, x], 0), ("s8[7,3]",)),
    "concatenate-empty": (lambda x, y: jnp.concatenate([x, y], 0), ("f32[0,3]", "f32[4,3]")),
    "concatenate-many": (lambda x: jnp.concatenate([x[i : i + 2] for i in range(40)], 0), ("f32[41,3]",)),
    "stack-and-flip": (lambda x, y: jnp.flip(jnp.stack([x, y], -1), -1), ("f32[129]", "f32[129]")),
    # Enough elements for every thread of the largest GPU to take three, which lie interleaved.
    "interleaved-rows": (lambda x: x.T, ("f32[270340,3]",)),
    "interleaved-channels": (lambda x: x.transpose(0, 3, 1, 2), ("u8[9,100,301,3]",)),
    "gather-rows-clip": (partial(_rows, mode="clip"), ("f32[17,9]", "s32[23]")),
    "gather-rows-fill": (partial(_rows, mode="fill"), ("f32[17,9]", "s32[23]")),
    "gather-rows-fill-s8": (partial(_rows, mode="fill"), ("bf16[100,3]", "s8[23]")),
    "gather-rows-u8": (partial(_rows, mode="clip"), ("f32[300,3]", "u8[23]")),
    "gather-rows-u32": (partial(_rows, mode="clip"), ("f32[17,3]", "u32[23]")),
    "gather-rows-s64": (partial(_rows, mode="clip"), ("f32[17,3]", "s64[23]")),
    "gather-rows-u64": (partial(_rows, mode="fill"), ("s64[17,3]", "u64[23]")),
    "gather-general": (_general_gather, ("f32[5,6,7]", "s32[11,2]")),
    "gather-along-axis": (lambda x, i: jnp.take_along_axis(x, i, 1, mode="clip"), ("f32[9,12]", "s32[9,4]")),
    "gather-batched": (jax.vmap(lambda x, i: x.at[i].get(mode="fill")), ("f32[6,12]", "s32[6,5]")),
    "gather-of-gather": (lambda x, i, j: x[i, :][j, :], ("f32[12,5]", "s32[9]", "s32[31]")),
    "constant-large": (
        lambda x: jnp.asarray(_TABLE) * 2 + jnp.asarray(_TABLE)[::-1].astype(x.dtype) + x,
        ("f32[40001]",),
    ),
    "constant-large-u16": (lambda i: jnp.asarray(_TABLE.astype(np.uint16)).at[i].get(mode="clip"), ("s32[301]",)),
    "constant-large-pred": (lambda i: jnp.asarray(_TABLE > 100).at[i].get(mode="clip"), ("s32[301]",)),
    "dynamic-slice": (_dynamic_slice, ("f32[11,7]", "s32[1]", "s32[1]")),
    "dynamic-slice-s64": (_dynamic_slice, ("f32[11,7]", "s64[1]", "s64[1]")),
    "dynamic-slice-u8": (_dynamic_slice, ("f32[11,7]", "u8[1]", "u8[1]")),
    "dynamic-update-slice": (_dynamic_update, ("f32[11,7]", "f32[4,3]", "s32[1]", "s32[1]")),
    "dynamic-update-slice-computed": (
        lambda x, u, i: lax.dynamic_update_slice(x * 2, u + 1, (i[0], i[0])),
        ("bf16[11,7]", "bf16[4,7]", "s32[1]"),
    ),
    "bitcast-f32-to-u8": (partial(_bitcast, target="uint8"), ("f32[7,3]",)),
    "bitcast-u8-to-f32": (partial(_bitcast, target="float32"), ("u8[7,3,4]",)),
    "bitcast-f64-to-u32": (partial(_bitcast, target="uint32"), ("f64[7,3]",)),
    "bitcast-u32-to-f64": (partial(_bitcast, target="float64"), ("u32[7,3,2]",)),
    "bitcast-s16-to-u64": (partial(_bitcast, target="uint64"), ("s16[5,4]",)),
    "bitcast-s64-to-bf16": (partial(_bitcast, target="bfloat16"), ("s64[5]",)),
    "bitcast-there-and-back": (
        lambda x: _bitcast(_bitcast(x * 2, "uint16")[:, ::-1] + 1, "int32"),
        ("s32[301]",),
    ),
    "roll": (lambda x: jnp.roll(x, (3, -2), (0, 1)), ("f32[13,17]",)),
    "empty": (lambda x: x * 2, ("f32[0,5]",)),
    "scalar": (lambda x: x * 2 + 1, ("f32[]",)),
    "rank-8": (lambda x: jnp.transpose(x, (7, 6, 5, 4, 3, 2, 1, 0)) + 1, ("f32[2,3,1,2,3,1,2,3]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs; integer inputs that serve as indices lie inside and outside the valid range."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
