"""When attention is computed faster by one kernel than by products of a library and a softmax between them."""

from typing import NamedTuple

from xgpu.device import Device

_LEAST_ROWS = 16
"""Rows that share keys from which on products of 64 rows are worth their work."""
_TILE_ROWS = 128
_TILE_KEYS = 128
_WIDE_ROWS, _WIDE_TILE_KEYS = 128, 64
"""Registers hold half of the keys beside rows of more elements."""
_STEP_SECONDS = 0.77e-6
_COLUMN_SECONDS = 6e-9
"""What a step takes besides, and for each element of a row: 1.16 us of 64 and 1.54 us of 128, measured on an H200."""
_LIBRARY_SHARE = 0.6
"""The part of the tensor cores' rate that a library's products reach, written out as they are."""
_LIBRARY_BYTES = 12
"""Bytes that are moved for each weight: logits of f32 and weights of 16 bits are written, and read again."""
_LIBRARY_LAUNCHES = 6
"""What two small products of a library, and a kernel between them, take besides their work, in launches."""

_PRODUCTS = 2
"""Products of attention."""
_LIBRARY_PRODUCTS = 4
"""Those of its gradient: of the values, of the weights, of the queries and of the keys."""
_QUERY_PRODUCTS, _KEY_PRODUCTS = 3, 5.3
"""What a gradient's step of a tile of queries takes, and one of keys, in products of attention. They have three and
four; the second is as long as 5.3 of them, as it holds two sums and so has less that runs beside products."""
_SUM_LAUNCHES = 3
"""What sums of rows, and what is made of them, take besides, in launches."""


class AttentionSizes(NamedTuple):
    """Matrices of weights, their rows and keys, and the elements of a row of both products' operands."""

    batch: int
    rows: int
    keys: int
    width: int
    columns: int


def is_fast(attention: AttentionSizes, target: Device) -> bool:
    """Whether a kernel of attention takes less time than its parts.

    It does not where few tiles of rows have many keys: nothing splits the keys, and most multiprocessors would wait.
    """
    if attention.rows < _LEAST_ROWS:
        return False
    return kernel_seconds(attention, target) < library_seconds(attention, target)


def is_gradient_fast(attention: AttentionSizes, target: Device) -> bool:
    """Whether kernels of attention and of its gradient take less time than all parts of these."""
    if attention.rows < _LEAST_ROWS:
        return False
    ours = kernel_seconds(attention, target) + gradient_seconds(attention, target)
    return ours < library_seconds(attention, target) + library_gradient_seconds(attention, target)


def gradient_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long two kernels take, of which one has tiles of rows, and one tiles of keys, about.

    A step of the one has three products instead of attention's two, a step of the other four.
    """
    turned = attention._replace(rows=attention.keys, keys=attention.rows)
    seconds = _QUERY_PRODUCTS * kernel_seconds(attention, target) + _KEY_PRODUCTS * kernel_seconds(turned, target)
    return seconds / _PRODUCTS + _SUM_LAUNCHES * target.launch_seconds


def library_gradient_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long a library's four products take, with gradients of weights in memory between them, about."""
    seconds = library_seconds(attention, target)
    return seconds * _LIBRARY_PRODUCTS / _PRODUCTS


def kernel_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long a kernel takes whose blocks have tiles of rows, about."""
    tiles = attention.batch * -(-attention.rows // _TILE_ROWS)
    is_wide = max(attention.width, attention.columns) > _WIDE_ROWS
    steps = -(-attention.keys // (_WIDE_TILE_KEYS if is_wide else _TILE_KEYS))
    step = _STEP_SECONDS + _COLUMN_SECONDS * (attention.width + attention.columns) / 2
    return target.launch_seconds + -(-tiles // target.sm_count) * (steps + 1) * step


def library_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long a library's products take with what must be in memory between them, about."""
    weights = attention.batch * attention.rows * attention.keys
    pairs = weights * (attention.width + attention.columns)
    rate = target.products_per_cycle * target.clock * target.sm_count * _LIBRARY_SHARE
    moved = weights * _LIBRARY_BYTES / target.memory_bandwidth
    return _LIBRARY_LAUNCHES * target.launch_seconds + pairs / rate + moved
