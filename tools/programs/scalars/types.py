"""Programs about element types: every conversion, arithmetic on the narrow ones, and arrays packed into bytes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xgpu.dtypes import DType, dtype_named
from xgpu.tools.programs.base import Array, TestProgram
from xgpu.tools.programs.scalars.conversions import REAL_TYPES, all_values, convert_exactly

PACKED = ("s2", "u2", "s4", "u4", "f4e2m1fn")
NARROW_FLOATS = tuple(dtype.hlo for dtype in REAL_TYPES if dtype.is_float and dtype.bits <= 8)

_LARGE = 300_001
"""More elements than a large GPU has threads: each computes several, and the last thread fewer than the others."""

_BINARY: tuple[Callable[..., Any], ...] = (
    lax.add,
    lax.sub,
    lax.mul,
    lax.div,
    lax.rem,
    lax.max,
    lax.min,
    lax.lt,
    lax.eq,
)
_BINARY_INTEGER: tuple[Callable[..., Any], ...] = (
    lax.bitwise_and,
    lax.bitwise_or,
    lax.bitwise_xor,
    lax.shift_left,
    lax.shift_right_arithmetic,
    lax.shift_right_logical,
)
_UNARY: tuple[Callable[..., Any], ...] = (lax.neg, lax.sign, lambda x: lax.clamp(x, x + x, x * x))
_UNARY_INTEGER: tuple[Callable[..., Any], ...] = (lax.bitwise_not, lax.clz)
_UNARY_FLOAT: tuple[Callable[..., Any], ...] = (
    lax.abs,
    lax.sqrt,
    lax.rsqrt,
    lax.exp,
    lax.log,
    lax.tanh,
    lax.sin,
    lax.floor,
    lax.ceil,
    lax.is_finite,
    lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    lambda x: lax.reduce_precision(x, 3, 1),
)


def _convert_to_all(x: Any, targets: Sequence[DType]) -> tuple[Any, ...]:
    # Not every argument is of 64 bits, which is what lets JAX keep such types.
    with jax.enable_x64(True):
        return tuple(lax.convert_element_type(x, target.numpy) for target in targets)


def conversions(source: DType) -> TestProgram:
    """Convert every value of a type, or many, to every other type."""
    targets = [target for target in REAL_TYPES if target != source]
    size = all_values(source).size

    def expected(inputs: Sequence[Array]) -> list[Array]:
        return [convert_exactly(inputs[0], source, target) for target in targets]

    function = partial(_convert_to_all, targets=targets)
    return TestProgram(f"convert-{source}", function, (f"{source}[{size}]",), lambda: [all_values(source)], expected)


def _apply_all(*operands: Any, functions: Sequence[Callable[..., Any]]) -> tuple[Any, ...]:
    return tuple(function(*operands) for function in functions)


def _values(dtype: DType) -> Array:
    """Return every value of a narrow type but powers of two whose products XLA on the CPU, as denormals, makes zero."""
    values = all_values(dtype)
    return values[64:190] if dtype.hlo == "f8e8m0fnu" else values


def _pairs(dtype: DType) -> list[Array]:
    values = _values(dtype)
    return [np.repeat(values, values.size), np.tile(values, values.size)]


def _arithmetic(dtype: DType) -> Iterator[TestProgram]:
    """Operations on every value, and on every pair."""
    binary = (*_BINARY, *(() if dtype.is_float else _BINARY_INTEGER))
    unary = (*_UNARY, *(_UNARY_FLOAT if dtype.is_float else _UNARY_INTEGER))
    count = _values(dtype).size
    specs = (f"{dtype}[{count * count}]",) * 2
    yield TestProgram(f"binary-{dtype}", partial(_apply_all, functions=binary), specs, partial(_pairs, dtype))
    function = partial(_apply_all, functions=unary)
    yield TestProgram(f"unary-{dtype}", function, (f"{dtype}[{count}]",), lambda: [_values(dtype)])


def _random(dtype: DType, *shapes: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(len(shapes))
    return [generator.choice(_values(dtype), shape) for shape in shapes]


def _table(shape: tuple[int, ...], dtype: DType) -> Any:
    return jnp.asarray(np.resize(_values(dtype)[::-1], shape))


def _concatenated(x: Any, y: Any) -> Any:
    return jnp.concatenate([x, y, x], 1)


def _expected_concatenated(inputs: Sequence[Array]) -> list[Array]:
    return [np.concatenate([inputs[0], inputs[1], inputs[0]], 1)]


def _movement(dtype: DType) -> Iterator[TestProgram]:
    """Programs that move elements to and from every place in a byte."""
    one = np.ones((), dtype.numpy)
    functions: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
        "flip-transpose": (lambda x: (jnp.flip(x.T, 0), x[1:, 2::3]), ((7, 13),)),
        "large": (lambda x, y: (x + y, jnp.where(x < y, x, y), x.astype(jnp.float32)), ((_LARGE,), (_LARGE,))),
        "large-flip": (lambda x: jnp.flip(x), ((_LARGE,),)),
        "large-shift": (lambda x: x[1:], ((_LARGE,),)),
        "transpose-large": (lambda x: x.T, ((601, 503),)),
        "pad": (lambda x: lax.pad(x, one, ((1, 2, 1), (-1, 3, 0))), ((9, 14),)),
        "table": (lambda x: (x * _table((5, 7), dtype), _table((5, 7), dtype)[::-1].T), ((5, 7),)),
        "large-table": (lambda x: jnp.where(x < x, x, _table((1001,), dtype)), ((1001,),)),
        "broadcast": (lambda x, y: x[:, None] + y, ((33,), (65,))),
        "iota": (lambda x: x + lax.iota(dtype.numpy, 3), ((3,),)),
        "reduce": (lambda x: (lax.reduce(x, one, lax.add, (1,)), lax.reduce(x, one, lax.max, (0,))), ((5, 6),)),
        "one": (lambda x: x + x, ((1,),)),
        "scalar": (lambda x: x + x, ((),)),
    }
    for name, (function, shapes) in functions.items():
        specs = tuple(f"{dtype}[{','.join(map(str, shape))}]" for shape in shapes)
        yield TestProgram(f"{name}-{dtype}", function, specs, partial(_random, dtype, *shapes))
    # XLA on the CPU ends the process for a concatenation of packed elements.
    shapes = ((5, 3), (5, 8))
    specs = tuple(f"{dtype}[{','.join(map(str, shape))}]" for shape in shapes)
    inputs = partial(_random, dtype, *shapes)
    yield TestProgram(f"concatenate-{dtype}", _concatenated, specs, inputs, _expected_concatenated)


def _indexed(dtype: DType) -> Iterator[TestProgram]:
    """Programs that find packed elements by run-time indices."""

    def inputs(*shapes: tuple[int, ...]) -> list[Array]:
        return [*_random(dtype, *shapes), np.array([3, -1, 0, 8, 100], np.int32)]

    gather = lambda x, i: (x.at[i].get(mode="clip"), x.at[:, i].get(mode="fill", fill_value=1))  # noqa: E731
    update = lambda x, y, i: lax.dynamic_update_slice(x, y, (i[0], i[3]))  # noqa: E731
    yield TestProgram(f"gather-{dtype}", gather, (f"{dtype}[9,15]", "s32[5]"), partial(inputs, (9, 15)))
    specs = (f"{dtype}[9,15]", f"{dtype}[3,5]", "s32[5]")
    yield TestProgram(f"update-{dtype}", update, specs, partial(inputs, (9, 15), (3, 5)))


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for source in REAL_TYPES:
        yield conversions(source)
    for name in dict.fromkeys((*PACKED, *NARROW_FLOATS)):
        yield from _arithmetic(dtype_named(name))
    for name in (*PACKED, "f8e4m3fn", "f8e5m2"):
        yield from _movement(dtype_named(name))
        yield from _indexed(dtype_named(name))
