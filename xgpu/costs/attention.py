"""The times of attention: by one kernel, and by a library's products with a softmax between them."""

from collections.abc import Sequence
from typing import NamedTuple

from xgpu.device import Device

SPLIT_KEYS = 128
"""Of what the keys of a part are a multiple, where they are split: of those of a step."""
_TILE_ROWS = 128
_TILE_KEYS = 128
_WIDE_ROWS, _WIDE_TILE_KEYS = 128, 64
"""Registers hold half of the keys beside rows of more elements."""
_STEP_SECONDS = 0.86e-6
_COLUMN_SECONDS = 6.2e-9
"""The time of a step besides, and for each element of a row: 1.26 us of 64 and 1.65 us of 128, measured on an H200."""
_WIDE_COLUMN_SECONDS = 26e-9
"""The same of f32: 2.5 us of 64 and 4.2 us of 128."""
_FUNCTION_SHARE = 0.9
"""The time of functions of logits, in times of their instructions: caps by hyperbolic tangents 1.2 to 1.5 us a step."""
_SINGLE_ROWS, _SINGLE_SHARE = 64, 0.65
"""One warp group has half of the products of two, but none run beside what it computes between them."""
_LIBRARY_SHARE = 0.6
"""The part of the tensor cores' rate that a library's products reach, written out as they are."""
_LOGIT_BYTES = 8
"""Bytes that are moved for each logit: f32 is written, and read again, as each weight is."""
_LIBRARY_READS = 0.7
"""The part of the memory's rate at which a library reads keys and values of few rows."""
_LIBRARY_LAUNCHES = 6
"""The time of two small products of a library, and a kernel between them, besides their work, in launches."""

_NARROW_BYTES = 2
"""Bytes of the elements for which steps and libraries were measured: those of others take as many times as long."""
_PART_BYTES = 4
"""Bytes of an element of what is stored of parts of the keys."""
_ROW_NUMBERS = 2
"""Numbers that are stored of each row, beside the sums."""

_PRODUCTS = 2
"""Products of attention."""
_LIBRARY_PRODUCTS = 4
"""Those of its gradient: of the values, of the weights, of the queries and of the keys."""
_QUERY_PRODUCTS, _KEY_PRODUCTS = 2.8, 5
"""The times of a gradient's step of a tile of queries, and of keys, in products of attention. They have three and
four; the second is as long as five of them, as it holds two sums and so has less that runs beside products."""
_SUMS_BYTES = 8
"""Those for each weight that is no softmax, which are 16 bits: written and read, before and after what is computed."""
_SUMS = 2.45
"""The time of sums without a softmax, in times of attention of their sizes: from 2.1 on without functions, which wait
behind products, and up to 3.6 with sigmoids and GELUs of few columns, as measured."""
_SUM_LAUNCHES = 3
"""The time of sums of rows, and of their epilogue, besides, in launches."""


class AttentionSizes(NamedTuple):
    """Matrices of weights, their rows and keys, the elements of a row of both products' operands, and their bytes.

    Of functions by which a logit is computed, also the ``instructions``.
    """

    batch: int
    rows: int
    keys: int
    width: int
    columns: int
    element_bytes: int = _NARROW_BYTES
    instructions: int = 0

    @property
    def share(self) -> float:
        """The time of products, as a multiple of that of 16 bits."""
        return self.element_bytes / _NARROW_BYTES


def is_fast(
    attention: AttentionSizes, target: Device, more: float = 0.0, products: AttentionSizes | None = None
) -> bool:
    """Whether a kernel of attention, or one of parts of the keys and what combines them, is faster than a library.

    Beside it ``more`` time is needed. A library may compute ``products`` of other sizes.
    """
    return fastest_seconds(attention, target) + more < library_seconds(products or attention, target)


def copying_seconds(elements: int, element_bytes: int, target: Device) -> float:
    """Return how long it takes to read and write some elements, about: nothing, if there are none."""
    return target.launch_seconds + 2 * elements * element_bytes / target.memory_bandwidth if elements else 0.0


def widening_seconds(elements: int, narrow_bytes: int, wide_bytes: int, target: Device) -> float:
    """Return by how much it delays a kernel against a library that its operand is of narrower elements, about.

    A kernel of its own widens them in memory; a library reads them as they are.
    """
    stored = elements * (narrow_bytes + wide_bytes) / target.memory_bandwidth
    spared = elements * (wide_bytes - narrow_bytes) / (target.memory_bandwidth * _LIBRARY_READS)
    return target.launch_seconds + stored + spared


def tiles_of(attention: AttentionSizes) -> int:
    """Return how many tiles of rows there are."""
    return attention.batch * -(-attention.rows // _TILE_ROWS)


def fastest_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long a kernel takes, with the keys in as many parts as are fastest."""
    return kernel_seconds(attention, target, splits_of(attention, target))


def gathering_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long it takes to read and write all queries, about."""
    moved = 2 * attention.batch * attention.rows * attention.width * attention.element_bytes
    return target.launch_seconds + target.memory_latency + moved / target.memory_bandwidth


def are_sums_fast(chains: Sequence[tuple[AttentionSizes, int]], products: int, target: Device) -> bool:
    """Whether chains of sums without a softmax are faster than so many ``products`` of a library.

    Each chain takes the time of attention of its sizes `_SUMS` times, by its own number of products instead of two.
    """
    ours = _SUMS * sum(kernel_seconds(sizes, target) * count / _PRODUCTS for sizes, count in chains)
    sizes, _ = max(chains, key=lambda each: library_seconds(each[0], target))
    moved = _LOGIT_BYTES + 2 * sizes.element_bytes - _SUMS_BYTES * sizes.share
    saved = sizes.batch * sizes.rows * sizes.keys * moved / target.memory_bandwidth
    return ours < (library_seconds(sizes, target) - saved) * products / _PRODUCTS


def is_gradient_fast(attention: AttentionSizes, target: Device, more: float = 0.0, has_result: bool = True) -> bool:
    """Whether kernels of attention and of its gradient, and ``more`` beside them, take less time than all their parts.

    Parts need no second product if the program ``has_result`` not of attention.
    """
    ours = kernel_seconds(attention, target) + gradient_seconds(attention, target)
    parts = attention if has_result else attention._replace(columns=0)
    return ours + more < library_seconds(parts, target) + library_gradient_seconds(attention, target)


def splits_of(attention: AttentionSizes, target: Device) -> int:
    """Return the number of parts of the keys with which attention takes the least time, the smallest of equal ones."""
    steps = -(-attention.keys // SPLIT_KEYS)
    candidates = sorted({-(-steps // each) for each in range(1, steps + 1)})
    return min(candidates, key=lambda splits: kernel_seconds(attention, target, splits), default=1)


def split_keys(keys: int, splits: int) -> int:
    """Return how many keys a part has, of at most so many parts: those of whole steps."""
    return -(-keys // (splits * SPLIT_KEYS)) * SPLIT_KEYS


def gradient_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return the approximate time of two kernels, one on tiles of rows and one on tiles of keys.

    A step of the one has three products instead of attention's two, a step of the other four.
    """
    turned = attention._replace(rows=attention.keys, keys=attention.rows)
    seconds = _QUERY_PRODUCTS * kernel_seconds(attention, target) + _KEY_PRODUCTS * kernel_seconds(turned, target)
    return seconds / _PRODUCTS + _SUM_LAUNCHES * target.launch_seconds


def library_gradient_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long a library's four products take, with gradients of weights in memory between them, about."""
    seconds = library_seconds(attention, target)
    return seconds * _LIBRARY_PRODUCTS / _PRODUCTS


def kernel_seconds(attention: AttentionSizes, target: Device, splits: int = 1) -> float:
    """Return how long a kernel takes whose blocks have tiles of rows, of each of some parts of the keys, about.

    With what combines the parts, if there are several. Multiprocessors compute one tile each at a time, unless memory
    keeps them waiting: tiles of the same keys read them once together.
    """
    keys = attention.keys if splits == 1 else split_keys(attention.keys, splits)
    whole, rest = divmod(tiles_of(attention) * splits, target.sm_count)
    shared = tiles_of(attention._replace(batch=1))
    computed, read = _tile_seconds(attention, keys, target), _operand_seconds(attention, keys, target) / shared
    seconds = whole * max(computed, target.sm_count * read) + (max(computed, rest * read) if rest else 0)
    seconds += target.launch_seconds
    return seconds if splits == 1 else seconds + _combination_seconds(attention, target, splits)


def _tile_seconds(attention: AttentionSizes, keys: int, target: Device) -> float:
    """Return how long a multiprocessor computes a tile of rows with so many keys, about."""
    is_wide = max(attention.width, attention.columns) > _WIDE_ROWS
    of_step = _WIDE_TILE_KEYS if is_wide else _TILE_KEYS
    steps = -(-keys // of_step)
    column = _COLUMN_SECONDS if attention.element_bytes == _NARROW_BYTES else _WIDE_COLUMN_SECONDS
    step = _STEP_SECONDS + column * (attention.width + attention.columns) / 2
    executed = _TILE_ROWS * of_step * attention.instructions * target.sm_count
    step += _FUNCTION_SHARE * executed / target.issue_rate
    return (steps + 1) * step * (_SINGLE_SHARE if attention.rows <= _SINGLE_ROWS else 1)


def _operand_seconds(attention: AttentionSizes, keys: int, target: Device) -> float:
    """Return how long so many keys of a matrix, and their values, are read at least."""
    return keys * (attention.width + attention.columns) * attention.element_bytes / target.memory_bandwidth


def _combination_seconds(attention: AttentionSizes, target: Device, splits: int) -> float:
    """Return how long what is stored of parts takes to be written and read again, and combined, about."""
    stored = splits * attention.batch * attention.rows * (attention.columns + _ROW_NUMBERS) * _PART_BYTES
    return target.launch_seconds + target.memory_latency + 2 * stored / target.memory_bandwidth


def library_seconds(attention: AttentionSizes, target: Device) -> float:
    """Return how long a library's products take with what must be in memory between them, about."""
    weights = attention.batch * attention.rows * attention.keys
    pairs = weights * (attention.width + attention.columns) * attention.share
    rate = target.products_per_cycle * target.clock * target.sm_count * _LIBRARY_SHARE
    moved = weights * (_LOGIT_BYTES + 2 * attention.element_bytes) / target.memory_bandwidth
    read = attention.batch * _operand_seconds(attention, attention.keys, target) / _LIBRARY_READS
    return _LIBRARY_LAUNCHES * target.launch_seconds + pairs / rate + moved + read
