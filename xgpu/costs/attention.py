"""When attention is computed faster by one kernel than by products of a library and a softmax between them."""

from xgpu.analysis.attention.attention import Attention
from xgpu.device import Device

_ROWS = 16
"""Rows that share keys from which on products of 64 rows are worth their work."""


def is_fast(attention: Attention, target: Device) -> bool:
    """Whether a kernel of attention takes less time than its parts."""
    return attention.rows >= _ROWS
