"""Runs a function on the host or the GPU, and finds its largest error."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import xgpu
from xgpu.runtime.jax_backend import gpu_device
from xgpu.runtime.reference import Reference
from xgpu.tools.accuracy.formats import Array, Format, errors, flushed_errors
from xgpu.tools.accuracy.functions import Function
from xgpu.tools.accuracy.samples import angles_near_quarter_turns, arguments, every_number

_PIECE = 1 << 18
"""Exact results are computed in pieces of this size, by a thread each."""
_CHUNK = 1 << 24
"""Numbers that a kernel is run on at once when every number of a format is measured."""

Run = Callable[[Sequence[Array]], Array]


@dataclass(frozen=True)
class Measured:
    """The largest error in units in the last place, the arguments that have it, and how many were tried."""

    error: float
    at: tuple[float, ...]
    result: float
    expected: float
    tried: int


def measure(
    function: Function,
    form: Format,
    *,
    on: str = "host",
    compiler: str = "xgpu",
    samples: int,
    exhaustive: bool = False,
) -> Measured:
    """Return the largest error of a function in one format.

    ``on`` is ``host`` or ``gpu``, ``compiler`` ``xgpu`` or ``xla``. With ``exhaustive``, every number is tried.
    """
    worst: Measured | None = None
    tried = 0
    run: Run | None = None
    for values in _batches(function, form, samples, exhaustive):
        if run is None:
            run = _program(function, form, values[0].size, on, compiler)
        found = _largest_error(function, form, compiler == "xla", values, run(values))
        tried += found.tried
        if worst is None or found.error > worst.error:
            worst = found
    assert worst is not None
    return Measured(worst.error, worst.at, worst.result, worst.expected, tried)


def _batches(function: Function, form: Format, samples: int, exhaustive: bool) -> Iterator[tuple[Array, ...]]:
    if exhaustive and function.arity == 1:
        yield from every_number(form, min(_CHUNK, 1 << form.bits))
        return
    values = arguments(form, function.arity, function.inside, samples)
    if function.is_angle and form.bits > 16:
        values = (np.concatenate([values[0], angles_near_quarter_turns(form)]),)
    yield values


def _program(function: Function, form: Format, size: int, on: str, compiler: str) -> Run:
    """Compile the function alone, for arrays of ``size``: the whole way from StableHLO is measured."""
    if isinstance(function.compute, str):
        program = xgpu.compile(_text(function.compute, form, size))
    else:
        program = xgpu.compile(function.compute, *[f"{form.name}[{size}]"] * function.arity)
    if compiler == "xgpu":
        return lambda values: program.run(*values, on=on)[0]
    if on == "host":
        return lambda values: program.reference(*values)[0]
    reference = Reference(program.source.module, gpu_device())
    return lambda values: reference(values)[0]


def _text(operation: str, form: Format, size: int) -> str:
    type_ = f"tensor<{size}x{form.name}>"
    return (
        f"func.func @main(%x: {type_}) -> {type_} {{\n  %y = stablehlo.{operation} %x : {type_}\n"
        f"  return %y : {type_}\n}}"
    )


def _largest_error(
    function: Function, form: Format, flushes: bool, values: Sequence[Array], results: Array
) -> Measured:
    pieces = [
        ([value[start : start + _PIECE] for value in values], results[start : start + _PIECE])
        for start in range(0, results.size, _PIECE)
    ]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda piece: _piece_error(function, form, flushes, *piece), pieces))
    return _merge(found)


def _merge(found: Sequence[Measured]) -> Measured:
    worst = max(found, key=lambda each: each.error)
    return Measured(worst.error, worst.at, worst.result, worst.expected, sum(each.tried for each in found))


def _piece_error(function: Function, form: Format, flushes: bool, values: Sequence[Array], results: Array) -> Measured:
    with np.errstate(all="ignore"):
        wide = [value.astype(form.wide) for value in values]
        exact = function.exact(*wide)
        if flushes or function.flushes:
            distances = flushed_errors(results, exact, wide, form, function.floor)
        else:
            distances = errors(results, exact, form, function.floor)
        if function.domain is not None:
            distances = np.where(function.domain(*wide), distances, 0)
    worst = int(np.argmax(distances))
    at = tuple(float(value[worst]) for value in values)
    return Measured(float(distances[worst]), at, float(results[worst]), float(exact[worst]), results.size)
