"""The times of matrix products for which XLA has only a loop for each element of the result."""

from math import prod

from xgpu.device import Device

_RATE, _RATE_ALONG = 4e12, 1.5e12
"""Multiplications in a second, on an H200: where neighbouring threads read neighbours of the right operand, and where
they read rows of it. Of 2048^3 and integers of 8 to 32 bits 1.8 to 2.5 and 0.6, of 1024^3 1.3 to 4.4 and 0.9 to 2.9."""
_CLOCK, _CORES = 1.98e9, 132
"""Of that GPU."""


def plain_product_seconds(sizes: tuple[int, int, int, int], is_along: bool, target: Device) -> float:
    """Return about how little time a loop takes: ``sizes`` are batch, m, n and k.

    ``is_along`` says that elements which are contracted are neighbours in the right operand.
    """
    scale = target.clock / _CLOCK * target.sm_count / _CORES
    return target.launch_seconds + prod(sizes) / (_RATE_ALONG if is_along else _RATE) / scale
