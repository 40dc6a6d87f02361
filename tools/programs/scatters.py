"""Programs around scatters and slices updated in place: every form of ``.at[]``, type, mode, odd sizes, gradients.

Updates with the same place are small integers, whose sums are exact in every type, so that their order does not matter.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xgpu.dtypes import dtype_named, parse_spec
from xgpu.tools.programs.base import ALL, Array, TestProgram

_TYPES = (*ALL, "c64", "c128", "s4", "u4", "s2", "f8e4m3fn", "f8e5m2", "f4e2m1fn")
_ORDERED = (*ALL, "s4", "u4", "f8e4m3fn")
"""Types whose numbers have an order."""
_FULLY = ("f32", "bf16", "s32", "u8", "s64", "s4")
_ROWS, _COLUMNS, _UPDATES = 33, 5, 47

# Of these, some are negative, some outside on both sides, and most are there several times.
_INDICES = np.random.default_rng(0).integers(-40, 40, _UPDATES)
_ONCE = np.random.default_rng(1).permutation(_ROWS)[:23]


def _draw(spec: str, seed: int) -> Array:
    """Return small integers of a type, from 0 to 3; any for packed ones."""
    dtype, shape = parse_spec(spec)
    generator = np.random.default_rng(seed)
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    values = generator.integers(0, 4, shape)
    if dtype.kind == "complex":
        return np.asarray(values + 1j * generator.integers(0, 4, shape)).astype(dtype.numpy)
    return np.asarray(values).astype(dtype.numpy)


def _program(name: str, function: Callable[..., Any], *specs: str, indices: Array | None = None) -> TestProgram:
    """Return a program that takes arrays of ``specs``, then, if given, indices."""
    every = specs if indices is None else (*specs, f"s32[{','.join(map(str, indices.shape))}]")

    def inputs() -> list[Array]:
        arrays = [_draw(spec, seed) for seed, spec in enumerate(specs)]
        return arrays if indices is None else [*arrays, indices.astype(np.int32)]

    return TestProgram(name, function, every, inputs)


def _functions(dtype: str) -> list[str]:
    """Return functions of ``.at[]`` that a type has and that do not depend on the order of updates; all for some."""
    kind = dtype_named(dtype).kind
    found = [] if kind == "bool" else ["add", "multiply"]
    found += ["min", "max"] if dtype in _ORDERED else []
    return found if dtype in _FULLY else found[::2]


def _of_rows(x: Any, updates: Any, indices: Any, functions: list[str]) -> tuple[Any, ...]:
    return tuple(getattr(x.at[indices], name)(updates) for name in functions)


def _once(x: Any, updates: Any, indices: Any, functions: list[str]) -> tuple[Any, ...]:
    return tuple(getattr(x.at[indices], name)(updates, unique_indices=True) for name in functions)


def _by_type() -> Iterator[TestProgram]:
    for dtype in _TYPES:
        functions = _functions(dtype)
        rows, many, once = (f"{dtype}[{size},{_COLUMNS}]" for size in (_ROWS, _UPDATES, len(_ONCE)))
        if functions:
            yield _program(f"rows-{dtype}", partial(_of_rows, functions=functions), rows, many, indices=_INDICES)
        if functions and dtype in _FULLY:
            single = (f"{dtype}[{_ROWS}]", f"{dtype}[{_UPDATES}]")
            yield _program(f"elements-{dtype}", partial(_of_rows, functions=functions[:1]), *single, indices=_INDICES)
        once_functions = partial(_once, functions=["set", *functions[:1]])
        yield _program(f"once-{dtype}", once_functions, rows, once, indices=_ONCE)


def _of_few_places(x: Any, updates: Any, rows: Any, columns: Any, indices: Any) -> tuple[Any, ...]:
    each = [getattr(x.at[indices], name)(updates) for name in ("add", "min", "max")]
    counts = jnp.bincount(jnp.abs(indices), length=_ROWS)
    return (*each, counts, rows.at[indices[::_COLUMNS]].add(columns), x.at[indices].add(updates, mode="clip"))


def _few() -> Iterator[TestProgram]:
    """So many updates of few places that blocks combine theirs in shared memory first."""
    indices = np.random.default_rng(2).integers(-40, 40, 33_000)
    for dtype in ("f32", "f64", "s32", "u32", "s64", "u64"):
        arrays = (f"{dtype}[{_ROWS}]", f"{dtype}[33000]", f"{dtype}[{_ROWS},{_COLUMNS}]", f"{dtype}[6600,{_COLUMNS}]")
        yield _program(f"few-{dtype}", _of_few_places, *arrays, indices=indices)


def _modes(x: Any, updates: Any, indices: Any) -> tuple[Any, ...]:
    return tuple(x.at[indices].add(updates, mode=mode) for mode in ("clip", "drop", "promise_in_bounds"))


def _forms(x: Any, row: Any, columns: Any, indices: Any) -> tuple[Any, ...]:
    return (
        x.at[:, indices % 5].add(columns),
        x.at[indices, indices % 5].max(row[0, 0]),
        x.at[3:9, 1::2].multiply(row[0, :2]),
        x.at[-1].set(row[0]),
        x.at[np.arange(_ROWS) % 3 == 0].min(2),
        x.at[..., None, 2].add(columns[:, :1]),
    )


def _derived(x: Any, updates: Any, indices: Any) -> tuple[Any, ...]:
    return (
        x.at[indices].divide(updates + 1),
        x.at[indices].power(updates[:, :1]),
        x.at[_ONCE].apply(lambda value: value * 2 + 1),
    )


def _vmapped(x: Any, updates: Any, indices: Any) -> tuple[Any, ...]:
    return (
        jax.vmap(lambda a, b, c: a.at[c].add(b))(x, updates, indices),
        jax.vmap(lambda a, b, c: a.at[c].max(b, mode="drop"), in_axes=(None, 0, 0))(x[0], updates, indices),
        jax.vmap(lambda b, c: x.at[:, c].add(b[0]), in_axes=(0, None))(updates[:2], indices[0]),
    )


def _segments(x: Any, indices: Any) -> tuple[Any, ...]:
    functions = (jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod)
    return tuple(function(x, indices, num_segments=20) for function in functions)


def _sorted_segments(x: Any, y: Any, indices: Any) -> tuple[Any, ...]:
    functions = (jax.ops.segment_sum, jax.ops.segment_max)
    return tuple(
        function(values, indices, num_segments=20, indices_are_sorted=True)
        for function, values in zip(functions, (x, y), strict=True)
    )


def _gradients(x: Any, weights: Any, indices: Any) -> tuple[Any, ...]:
    def gathered(function: Callable[..., Any]) -> Any:
        return jax.grad(lambda value: (function(value) * weights).sum())(x)

    return (
        gathered(lambda value: value[indices]),
        gathered(lambda value: jnp.take(value, indices, axis=0, mode="clip")),
        gathered(lambda value: jnp.take(value, indices % 5, axis=1)[:1].T),
    )


def _slices(x: Any, y: Any, update: Any, indices: Any) -> tuple[Any, ...]:
    """Slices updated in place: two in one kernel, then a part of the first again."""
    first = lax.dynamic_update_slice(x, update, (indices[0], indices[1]))
    second = lax.dynamic_update_slice(y, update * 2, (indices[1], indices[2]))
    return lax.dynamic_update_slice(first, update[:1] + 1, (indices[2], indices[0])), second


def _slices_of(dims: int) -> Callable[..., Any]:
    """Return a function that updates slices, of which those of 2 dimensions are whole rows."""
    columns = (lambda i: i[1]) if dims == 1 else (lambda i: 0)
    return lambda x, y, update, i: (
        lax.dynamic_update_slice(x, update, (i[0], columns(i))),
        lax.dynamic_update_slice(y, update, (i[2], columns(i))),
    )


def _reading_itself(x: Any, indices: Any) -> tuple[Any, ...]:
    return x.at[indices].add(x[indices[::-1]]), x.at[:20].add(x[1:21]), x.at[_ONCE].set(x[:23])


def _around(x: Any, updates: Any, indices: Any) -> Any:
    """A scatter between others: of a computed operand and update, into what is computed with and updated again."""
    first = (x * 2).at[indices + 1].add(jnp.exp2(updates))
    return (first + 1).at[indices // 2].multiply(2), first.sum(0)


def _sizes() -> Iterator[TestProgram]:
    generator = np.random.default_rng(2)
    for rows, updates, columns in ((1, 1, 1), (7, 31, 1), (31, 33, 2), (32, 32, 8), (13, 1023, 3), (1025, 7, 1025)):
        specs = (f"f32[{rows},{columns}]", f"f32[{updates},{columns}]")
        indices = generator.integers(0, rows, updates)
        yield _program(
            f"size-{rows}-{updates}-{columns}", partial(_of_rows, functions=["add"]), *specs, indices=indices
        )
    for shape, size in (("0,5", 4), ("5,0", 4), ("5,3", 0)):
        specs = (f"f32[{shape}]", f"f32[{size},{shape[2]}]")
        indices = np.zeros(size, np.int64)
        yield _program(f"size-{shape}-{size}", partial(_of_rows, functions=["add"]), *specs, indices=indices)
    yield _program("rank-0", lambda x, y: x.at[...].add(y), "f32[]", "f32[]")
    rank_8 = "f32[2,3,1,2,5,1,2,3]"
    yield _program("rank-8", lambda x, i: x.at[:, i, 0, :, i].add(2), rank_8, indices=np.array([0, 2, 1, 2]))


def _large() -> Iterator[TestProgram]:
    """Enough updates for each thread to make several."""
    generator = np.random.default_rng(3)
    for dtype, columns in (("f32", 96), ("bf16", 96), ("f16", 64), ("s8", 48), ("f32", 97), ("f32", 1)):
        updates = 300_000 // columns
        specs = (f"{dtype}[700,{columns}]", f"{dtype}[{updates},{columns}]")
        indices = generator.integers(-9, 720, updates)
        name = f"large-{dtype}-{columns}"
        if dtype_named(dtype).is_integer or columns > 1:
            # Few enough additions to an element for the sums to be exact.
            yield _program(name, partial(_of_rows, functions=["add"]), *specs, indices=indices)
        once = np.concatenate([np.arange(700), np.full(updates - 700, 700)])
        yield _program(f"{name}-once", partial(_once, functions=["set", "add"]), *specs, indices=once)
    elements = ("f32[70000]", "f32[300000]")
    yield _program("large-elements", partial(_of_rows, functions=["add"]), *elements, indices=_spread(70_000))
    slices = ("bf16[3,4000,128]", "bf16[1,3000,128]")
    yield _program(
        "large-slice", lambda x, y, i: lax.dynamic_update_slice(x, y, (i[0], i[1], 0)), *slices, indices=_ONCE
    )


def _spread(size: int) -> Array:
    return np.random.default_rng(4).integers(0, size, 300_000)


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    rows, many = f"f32[{_ROWS},{_COLUMNS}]", f"f32[{_UPDATES},{_COLUMNS}]"
    yield from _by_type()
    yield from _few()
    yield _program("modes", _modes, rows, many, indices=_INDICES)
    yield _program("forms", _forms, rows, "f32[1,5]", f"f32[{_ROWS},{_UPDATES}]", indices=_INDICES)
    yield _program("derived", _derived, rows, many, indices=_INDICES)
    batched = np.random.default_rng(5).integers(-6, 6, (_ROWS, 4))
    yield _program("vmapped", _vmapped, rows, f"f32[{_ROWS},4]", indices=batched)
    yield _program("segments", _segments, many, indices=np.abs(_INDICES))
    specs = (many, f"s32[{_UPDATES}]")
    yield _program("sorted-segments", _sorted_segments, *specs, indices=np.sort(np.abs(_INDICES)))
    yield _program("gradients", _gradients, rows, many, indices=_INDICES)
    yield _program("slices", _slices, rows, rows, "f32[9,2]", indices=np.array([2, 30, -3]))
    for at, shape in ((1, "9,2"), (2, "9,6")):
        # Slices of rows, which begin inside a byte, and of whole rows.
        packed = ("s4[33,6]", "s4[33,6]", f"s4[{shape}]")
        yield _program(f"slices-packed-{at}", _slices_of(at), *packed, indices=np.array([2, 30, -3]))
    yield _program("reading-itself", _reading_itself, rows, indices=_INDICES)
    yield _program("around", _around, rows, many, indices=np.abs(_INDICES) % 60)
    yield from _sizes()
    yield from _large()
