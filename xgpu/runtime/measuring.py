"""Measures how long programs take on a GPU, on random arrays, and whether they compute the same.

The time is a call's, of calls that are queued one after the other: what a program that waits for the results would see,
gaps between its kernels included, which the kernels' own times leave out. Where a call is so short that the host may
not keep up, a program is repeated within one call. All programs are measured in turn, several times, so that they see
the same clocks, and each time is the median: what else the machine does meanwhile lengthens few of them.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import jit as jax_jit
from jax import lax

from xgpu.device import Device
from xgpu.errors import ToolError, XgpuError
from xgpu.frontend.signature import ArgumentSpec
from xgpu.runtime.compare import ulp_tolerance
from xgpu.runtime.inputs import random_inputs
from xgpu.runtime.jax_backend import call_program, gpu_device
from xgpu.runtime.program import CompiledProgram

_ROUNDS = 9
_ROUND_SECONDS = 2e-3
_CALLS = (4, 64)
"""The fewest and the most calls that are queued in a round, as many as take the time above."""
_WARM_UP = 3
"""Calls before any is measured: XLA records a CUDA graph in one of the first."""
_SHORT_SECONDS = 100e-6
"""Calls that take less are made longer: the host takes some 25 us for one."""
_REPEATS = 8
_REPEATED_BYTES = 1 << 30
"""The most memory for results of a program that is repeated."""
_WRONG_SHARE = 1e-4
"""The part of a result that may be off: rounded to the other side of where a function jumps, such as a comparison."""
_GRAPHS = {"xla_gpu_graph_min_graph_size": 2}
"""XLA records sequences of kernels as CUDA graphs, as in the programs that these are measured for."""
_AS_WRITTEN = {"xla_allow_excess_precision": False}
"""Each operation rounds to its type, as in a kernel."""

type Run = Callable[..., Any]
type Outcome = float | str
"""The seconds that a program takes, or why it cannot be used."""


class Gpu:
    """A GPU of JAX's to measure on."""

    def __init__(self, device: Any):
        self._device = device

    @property
    def name(self) -> str:
        """The name of the GPU, the same for all of a kind."""
        return str(self._device.device_kind)

    def measure(self, arguments: Sequence[ArgumentSpec], programs: Sequence[CompiledProgram]) -> list[Outcome]:
        """Return how long each program of these arguments takes. All are to compute what the first one does."""
        with _usual_modes(self._device):
            try:
                return _measured(arguments, programs)
            except jax.errors.JaxRuntimeError as error:
                # For example, there may be too little memory.
                return [_first_line(error)] * len(programs)


@contextmanager
def _usual_modes(device: Any) -> Iterator[None]:
    """Run what is inside on a device in the usual modes of JAX.

    A program may be compiled while another one is traced, in whatever modes that is in: what is run to measure it is
    none of the user's. For example, results of random arrays may be NaN, which `jax.debug_nans` would stop at.
    """
    modes: Sequence[Any] = (
        jax.ensure_compile_time_eval(),
        jax.default_device(device),
        jax.enable_x64(True),
        jax.disable_jit(False),
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.transfer_guard("allow"),
        jax.numpy_dtype_promotion("standard"),
    )
    with ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        yield


def _measured(arguments: Sequence[ArgumentSpec], programs: Sequence[CompiledProgram]) -> list[Outcome]:
    arrays = _draw(arguments)
    checked = _checked(arguments, arrays, programs)
    runs = {number: run for number, run in enumerate(checked) if not isinstance(run, str)}
    repeats = _repeats(programs[0], min((_seconds(run, arrays, _WARM_UP) for run in runs.values()), default=1.0))
    if repeats > 1:
        runs = {number: _jitted(programs[number], repeats) for number in runs}
    seconds = dict(zip(runs, _medians([*runs.values()], arrays), strict=True))
    return [seconds[number] / repeats if number in seconds else str(run) for number, run in enumerate(checked)]


def gpu_for(target: Device) -> Gpu:
    """Return JAX's GPU; raises `ToolError` if it has none, or none that runs kernels for ``target``."""
    found = gpu_device()
    capability = str(found.compute_capability).replace(".", "")
    if capability != str(target.compute_capability):
        raise ToolError(f"JAX's GPU, {found.device_kind}, does not run kernels for {target.name}")
    return Gpu(found)


def _draw(arguments: Sequence[ArgumentSpec]) -> list[jax.Array]:
    """Return arrays of normally distributed floats, and of numbers that may be indices."""
    extents = [size for spec in arguments for size in spec.shape]
    keys = jax.random.split(jax.random.key(0), len(arguments))
    return [
        _normal(key, spec.shape, spec.dtype.numpy)
        if spec.dtype.is_float
        else jnp.asarray(random_inputs([spec], extents, number)[0])
        for number, (key, spec) in enumerate(zip(keys, arguments, strict=True))
    ]


@partial(jax_jit, static_argnums=(1, 2))
def _normal(key: jax.Array, shape: Sequence[int], dtype: Any) -> jax.Array:
    """Return an array of normally distributed floats; there is none of wider floats on the way, which may not fit."""
    return jax.random.normal(key, shape, jnp.float32).astype(dtype)


def _jitted(program: CompiledProgram, repeats: int = 1, **options: Any) -> Run:
    """Return a function that runs a program some times, one after the other, and returns all of its results."""

    def run(*arrays: Any) -> list[Any]:
        results = [call_program(program, arrays)]
        for _ in range(repeats - 1):
            # Else all would be one.
            arrays, _ = lax.optimization_barrier((arrays, results[-1]))  # type: ignore[no-untyped-call]
            results.append(call_program(program, arrays))
        return results

    on_gpu = _GRAPHS if jax.default_backend() == "gpu" else {}
    return jax_jit(run, compiler_options={**on_gpu, **options})


def _checked(
    arguments: Sequence[ArgumentSpec], arrays: Sequence[jax.Array], programs: Sequence[CompiledProgram]
) -> list[Run | str]:
    """Return each program as a function that was called, or why it cannot be used."""
    expected = _called(_jitted(programs[0], **_AS_WRITTEN), arrays)
    if isinstance(expected, str):
        return [f"nothing to compare with: {expected}"] * len(programs)
    tolerance = _tolerance([*arguments, *programs[0].results])
    checked: list[Run | str] = []
    for number, program in enumerate(programs):
        run = _jitted(program)
        found = _called(run, arrays)
        if isinstance(found, str):
            checked.append(found)
        elif number and (problem := _difference(found[0], expected[0], tolerance)) is not None:
            checked.append(problem)
        else:
            checked.append(run)
    return checked


def _called(run: Run, arrays: Sequence[jax.Array]) -> list[list[jax.Array]] | str:
    """Return what a function returns, or why it failed."""
    try:
        results: list[list[jax.Array]] = jax.block_until_ready(run(*arrays))  # type: ignore[no-untyped-call]
        return results
    except (XgpuError, jax.errors.JaxRuntimeError) as error:
        return _first_line(error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _tolerance(specs: Sequence[ArgumentSpec]) -> float:
    """Return the relative error that is agreement: that of the narrowest of the floats that go in and come out."""
    floats = [spec.dtype for spec in specs if spec.dtype.is_float]
    epsilons = (float(ml_dtypes.finfo(dtype.numpy).eps) for dtype in floats)  # type: ignore[no-untyped-call]
    return max((ulp_tolerance(dtype) * each for dtype, each in zip(floats, epsilons, strict=True)), default=0.0)


def _difference(found: Sequence[jax.Array], expected: Sequence[jax.Array], tolerance: float) -> str | None:
    """Return how results differ from those expected, by more than a few elements; None if they do not."""
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        share = float(_wrong_share(one, other, tolerance))
        if share > _WRONG_SHARE:
            return f"wrong result {number}: {100 * share:.2f} % of its elements are not what XLA computes"
    return None


@jax_jit
def _wrong_share(found: jax.Array, expected: jax.Array, tolerance: float) -> jax.Array:
    """Return the part of the elements that differ by more than the tolerance, relative to them and to their mean."""
    same = found == expected
    if jnp.issubdtype(expected.dtype, jnp.inexact):
        wide = jnp.promote_types(expected.dtype, jnp.float32)
        one, other = found.astype(wide), expected.astype(wide)
        is_finite = jnp.isfinite(other)
        size = jnp.abs(jnp.where(is_finite, other, 0))
        close = jnp.abs(one - other) <= tolerance * (size + jnp.sqrt(jnp.mean(size * size)))
        same = same | (is_finite & close) | (jnp.isnan(one) & jnp.isnan(other))
    return jnp.mean(~same, dtype=jnp.float32)


def _repeats(program: CompiledProgram, seconds: float) -> int:
    """Return how often a program that takes so long is run in a call."""
    size = sum(math.prod(spec.shape) * np.dtype(spec.dtype.numpy).itemsize for spec in program.results)
    return max(1, min(_REPEATS, _REPEATED_BYTES // max(1, size))) if seconds < _SHORT_SECONDS else 1


def _medians(runs: Sequence[Run], arrays: Sequence[jax.Array]) -> list[float]:
    """Return the seconds of a call of each function, which all have been compiled before they are measured in turn."""
    calls = []
    for run in runs:
        first = _seconds(run, arrays, _WARM_UP)
        calls.append(min(_CALLS[1], max(_CALLS[0], int(_ROUND_SECONDS / first))))
    samples: list[list[float]] = [[] for _ in runs]
    for _ in range(_ROUNDS):
        for run, count, times in zip(runs, calls, samples, strict=True):
            times.append(_seconds(run, arrays, count))
    return list(map(statistics.median, samples))


def _seconds(run: Run, arrays: Sequence[jax.Array], calls: int) -> float:
    """Return the time of a call when calls follow each other without a pause, after one that is not counted."""
    jax.block_until_ready(run(*arrays))  # type: ignore[no-untyped-call]
    start = time.perf_counter()
    for _ in range(calls):
        results = run(*arrays)
    jax.block_until_ready(results)  # type: ignore[no-untyped-call]
    return (time.perf_counter() - start) / calls
