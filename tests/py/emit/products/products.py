"""Products that kernels compute by tiles, of numbers whose sums are exact: whatever the order, a result is one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import xgpu
from tests.py.planned import TARGET, planned

KERNELS = xgpu.Options(products="kernels", pad_products=False)
ORDERS = {"mk,kn": (1, 0), "km,kn": (0, 0), "mk,nk": (1, 1), "km,nk": (0, 1)}
"""The contracted dimensions of the operands, by how they lie in memory."""


def compiled(function: Callable[..., Any], *specs: str, **schedule: int) -> xgpu.Compiled:
    """Return a program of one kernel, a product, with some numbers of its schedule fixed.

    If these do not say so, tiles are neither split nor swapped.
    """
    options = KERNELS
    if schedule:
        name = planned(function, specs, TARGET, KERNELS).kernels[0].name
        options = replace(KERNELS, schedules={name: {"split": 1, "swapped": False, **schedule}})
    program = xgpu.compile(function, *specs, options=options)
    assert [kernel.emitter for kernel in program.kernels] == ["product"]
    assert program.main is None
    return program


def whole_numbers(program: xgpu.Compiled, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Return arguments of small whole numbers: f32 has all sums of up to 2**18 products of such."""
    generator = np.random.default_rng(seed)
    return [generator.integers(-8, 9, spec.shape).astype(spec.dtype.numpy) for spec in program.arguments]


def is_exact(program: xgpu.Compiled, arguments: Sequence[Any] | None = None) -> None:
    """Run on the host, whose sanitizer finds nothing, and compare with XLA to the bit."""
    given = whole_numbers(program) if arguments is None else arguments
    for one, other in zip(program.run(*given, sanitize=True), program.reference(*given), strict=True):
        # NumPy takes NaN for equal in its own types only.
        known = np.float32 if one.dtype.kind == "V" else one.dtype
        np.testing.assert_array_equal(one.astype(known), other.astype(known))
