"""The arguments that functions are measured at."""

import math
from collections.abc import Iterator

import numpy as np

from xgpu.tools.accuracy.formats import Array, Format

_ALL_CODES_BITS = 16
"""Formats up to this width are measured at every number."""
_REACH = 3
"""Neighbours on each side of a number where results over- or underflow or an implementation may branch."""


def arguments(form: Format, arity: int, inside: tuple[float, float], count: int) -> tuple[Array, ...]:
    """Return ``arity`` arrays of arguments of one length.

    One argument: every number of a 16-bit format; of a wider one ``count`` numbers, one from each of ``count`` equal
    parts of all bit patterns, a quarter as many evenly from ``inside``, and `edges`. Two arguments: ``count`` pairs of
    such numbers in random order, as many from ``inside``, and the edges against each other.
    """
    generator = np.random.default_rng(0)
    if arity == 1:
        if form.bits <= _ALL_CODES_BITS:
            return (form.from_codes(np.arange(1 << form.bits)),)
        return (
            np.concatenate([_strata(form, count, generator), _even(form, inside, count // 4, generator), edges(form)]),
        )
    few = edges(form)[:: 1 if form.bits > _ALL_CODES_BITS else 3]
    grids = np.meshgrid(*[few] * arity)
    return tuple(
        np.concatenate(
            [
                generator.permutation(_strata(form, count, generator)),
                _even(form, inside, count, generator),
                grid.ravel(),
            ]
        )
        for grid in grids
    )


def every_number(form: Format, chunk: int) -> Iterator[tuple[Array, ...]]:
    """Yield all numbers of the format in arrays of ``chunk``."""
    for start in range(0, 1 << form.bits, chunk):
        yield (form.from_codes(np.arange(start, start + chunk, dtype=np.uint64)),)


def _strata(form: Format, count: int, generator: np.random.Generator) -> Array:
    step = (1 << form.bits) // min(count, 1 << form.bits)
    starts = np.arange(min(count, 1 << form.bits), dtype=np.uint64) * np.uint64(step)
    codes = form.from_codes(starts + generator.integers(0, step, starts.size, dtype=np.uint64))
    return np.resize(codes, count)


def _even(form: Format, inside: tuple[float, float], count: int, generator: np.random.Generator) -> Array:
    return generator.uniform(*inside, count).astype(form.dtype)


def edges(form: Format) -> Array:
    """Return special values, and numbers around those where results over- or underflow or branches are taken."""
    wide = np.float64
    largest, tiny = np.ldexp(wide(2) - np.ldexp(wide(1), -form.mantissa), form.highest), 2.0**form.lowest
    subnormal = np.ldexp(wide(1), form.lowest - form.mantissa)
    logs = [math.log(largest), math.log(tiny), math.log(subnormal)]
    inner = [*logs, *(x / math.log(2) for x in logs), logs[0] + math.log(2), logs[2] - math.log(2)]
    inner += [17.0, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 2 / 3, 4 / 3, math.log(2) / 2, math.pi / 4, math.pi / 2, math.pi]
    inner += [math.tan(math.pi / 8), 1 / math.tan(math.pi / 8), 3.0, 4.0, 6.0, 8.0, 10.0, 27.0, 2.0**17, 2.0**30]
    with np.errstate(over="ignore"):
        near = _neighbours(np.array(inner, wide).astype(form.dtype), form)
    special = np.array([0, 1e-3, 101, 1e3, subnormal, tiny, largest, np.inf], wide).astype(form.dtype)
    positive = np.concatenate([special, near])
    return np.concatenate([positive, -positive, np.array([np.nan]).astype(form.dtype)])


def _neighbours(values: Array, form: Format) -> Array:
    """Return the numbers and those up to a few steps from them, by their bits."""
    codes = values.view(f"uint{form.bits}")
    steps = np.arange(-_REACH, _REACH + 1).astype(codes.dtype)
    return form.from_codes((codes[:, None] + steps[None, :]).ravel())


def angles_near_quarter_turns(form: Format) -> Array:
    """Return numbers next to multiples of pi/2, small and huge, where reducing an angle cancels most of its bits."""
    turns = np.concatenate([np.arange(1, 1 << 14), np.random.default_rng(8).integers(1, 1 << 60, 1 << 13)])
    nearest = (turns * (np.arctan(np.longdouble(1)) * 2)).astype(form.dtype)
    # The closest that numbers of the two formats come to a multiple of pi/2, found by continued fractions.
    hardest = {32: [16367173 * 2.0**72, 16367173 * 2.0**73], 64: [6381956970095103 * 2.0**797]}
    values = np.concatenate([nearest, np.array(hardest.get(form.bits, []), np.float64).astype(form.dtype)])
    return values[np.isfinite(values.astype(np.float64))]
