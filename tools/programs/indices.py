"""Programs whose indices are run-time values of each integer type, at the ends of the type and of the valid range."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from jax import lax

from xgpu.dtypes import DType, dtype_named
from xgpu.tools.programs.base import INTEGERS, Array, TestProgram

_ROWS, _COLUMNS = 300, 7
"""More rows than narrow types can number, and fewer than wider ones can."""

_SLICE = (5, 3)
_POINTS = 12


def _index_values(dtype: DType) -> Array:
    """Return the ends of the type's range and of the valid ranges of both dimensions, and beside them."""
    lowest = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    highest = (1 << (dtype.bits - dtype.is_signed)) - 1
    # The lower half of a 64-bit index looks valid by itself.
    values = [lowest, lowest + 1, -_ROWS - 1, -1, 0, 1, 3, 4, 6, 7, _ROWS - 6, _ROWS - 5, _ROWS - 4, _ROWS - 1, _ROWS]
    values += [
        highest // 2,
        highest // 2 + 1,
        highest - 1,
        highest,
        2**31 - 1,
        2**31,
        2**32,
        2**32 + 3,
        2**40,
        2**63 + 3,
    ]
    return np.array([value for value in values if lowest <= value <= highest], dtype.numpy)


def _dynamic_slices(x: Any, indices: Any, wrap: bool) -> tuple[Any, ...]:
    """Slices at starts taken from ``indices``, as they are or, below zero, from the end as in Python."""
    return tuple(
        lax.dynamic_slice(x, (indices[i], indices[-1 - i]), _SLICE, allow_negative_indices=wrap) for i in range(_POINTS)
    )


def _dynamic_updates(x: Any, update: Any, indices: Any) -> tuple[Any, ...]:
    return tuple(
        lax.dynamic_update_slice(x, update, (indices[i], indices[-1 - i]), allow_negative_indices=False)
        for i in range(_POINTS)
    )


def _gather(x: Any, indices: Any, mode: str) -> Any:
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
    return lax.gather(x, indices, numbers, slice_sizes=_SLICE, mode=mode)


def _rows(x: Any, indices: Any, mode: str) -> Any:
    # JAX adds the number of rows to negative indices in their own type, so that it must be able to hold it.
    return x[:100].at[indices].get(mode=mode)


def _filled_with(x: Any, indices: Any) -> Any:
    return x.at[:, indices].get(mode="fill", fill_value=-1)


def _data() -> Array:
    return np.arange(_ROWS * _COLUMNS, dtype=np.float32).reshape(_ROWS, _COLUMNS)


def _vector(dtype: DType) -> Array:
    values = _index_values(dtype)
    return np.resize(values, max(values.size, _POINTS))


def _pairs(dtype: DType) -> Array:
    values = _index_values(dtype)
    return np.stack([np.repeat(values, values.size), np.tile(values, values.size)], 1)


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name in INTEGERS:
        dtype = dtype_named(name)
        data, update = f"f32[{_ROWS},{_COLUMNS}]", f"f32[{_SLICE[0]},{_SLICE[1]}]"
        one, two = (f"{name}[{','.join(map(str, make(dtype).shape))}]" for make in (_vector, _pairs))
        on_vectors: dict[str, Callable[..., Any]] = {
            "dynamic-slice": partial(_dynamic_slices, wrap=False),
            "dynamic-slice-wrapped": partial(_dynamic_slices, wrap=True),
            "rows-clip": partial(_rows, mode="clip"),
            "rows-fill": partial(_rows, mode="fill"),
            "columns-fill-value": _filled_with,
        }
        for kind, function in on_vectors.items():
            yield TestProgram(f"{kind}-{name}", function, (data, one), partial(_inputs, _vector, dtype))
        yield TestProgram(
            f"dynamic-update-slice-{name}", _dynamic_updates, (data, update, one), partial(_update_inputs, dtype)
        )
        for mode in ("clip", "fill", "promise_in_bounds"):
            # Of what is promised and does not hold, StableHLO still says that it is clamped.
            function = partial(_gather, mode=mode)
            yield TestProgram(f"gather-{mode}-{name}", function, (data, two), partial(_inputs, _pairs, dtype))


def _inputs(make: Callable[[DType], Array], dtype: DType) -> list[Array]:
    return [_data(), make(dtype)]


def _update_inputs(dtype: DType) -> list[Array]:
    return [_data(), -np.ones(_SLICE, np.float32), _vector(dtype)]
