"""Complex numbers: functions at special values of both parts, conversions, data movement and reductions."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xgpu.dtypes import DType, dtype_named
from xgpu.tools.programs.base import ALL, Array, TestProgram, pairs

COMPLEX = ("c64", "c128")

_SIZE = 577
"""A prime above the square of the number of special values: no vector width divides it."""

UNARY: dict[str, Callable[..., Any]] = {
    "abs": lax.abs,
    "acos": lax.acos,
    "acosh": lax.acosh,
    "asin": lax.asin,
    "asinh": lax.asinh,
    "atan": lax.atan,
    "atanh": lax.atanh,
    "conj": lax.conj,
    "cos": lax.cos,
    "cosh": lax.cosh,
    "exp": lax.exp,
    "expm1": lax.expm1,
    "log": lax.log,
    "log1p": lax.log1p,
    "logistic": lax.logistic,
    "neg": lax.neg,
    "parts": lambda z: (lax.real(z), lax.imag(z)),
    "rsqrt": lax.rsqrt,
    "sign": lax.sign,
    "sin": lax.sin,
    "sinh": lax.sinh,
    "sqrt": lax.sqrt,
    "square": lax.square,
    "tan": lax.tan,
    "tanh": lax.tanh,
}
"""Functions of one array."""

BINARY: dict[str, Callable[..., Any]] = {
    "add": lax.add,
    "div": lax.div,
    "eq": lax.eq,
    "mul": lax.mul,
    "ne": lax.ne,
    "pow": lax.pow,
    "sub": lax.sub,
}
"""Functions of two arrays."""


def _part(dtype: DType) -> Any:
    return np.float32 if dtype.hlo == "c64" else np.float64


def _grid(dtype: DType, parts: list[float]) -> Array:
    """Return every number with both parts among ``parts``."""
    values = np.array(parts, _part(dtype))
    grid = np.empty(values.size**2, dtype.numpy)
    grid.real, grid.imag = np.repeat(values, values.size), np.tile(values, values.size)
    return grid


def _drawn(dtype: DType, size: int, generator: np.random.Generator) -> Array:
    real, imaginary = generator.standard_normal((2, size)) * 2
    return np.asarray((real + 1j * imaginary).astype(dtype.numpy))


def _unary_inputs(dtype: DType) -> list[Array]:
    limits = np.finfo(_part(dtype))
    edges = [0.0, 1e-3, 0.5, 1.0, 3.7, 100.0, 1e18, float(limits.max), float(limits.tiny), np.inf]
    special = _grid(dtype, [*edges, *(-edge for edge in edges), np.nan])
    return [np.concatenate([special, _drawn(dtype, _SIZE - special.size, np.random.default_rng(0))])]


def _binary_inputs(dtype: DType) -> list[Array]:
    """Special values whose products are exact: XLA on the CPU rounds a product and the sum after it at once."""
    special = _grid(dtype, [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, np.inf, -np.inf, np.nan])
    generator = np.random.default_rng(0)
    left, right = np.repeat(special, special.size), np.tile(special, special.size)
    return [np.concatenate([values, _drawn(dtype, 100, generator)]) for values in (left, right)]


def _power_inputs(dtype: DType) -> list[Array]:
    """Without infinite exponents and infinite parts of the base, at which the angle of a power means nothing."""
    special = _grid(dtype, [0.0, -0.0, 0.5, 1.0, -1.5, np.nan])
    generator = np.random.default_rng(0)
    left, right = np.repeat(special, special.size), np.tile(special, special.size)
    of_infinity = np.array([np.inf] * 4, dtype.numpy), np.array([2, -2, 0, 0.5], dtype.numpy)
    pieces = zip((left, right), of_infinity, strict=True)
    return [np.concatenate([*piece, _drawn(dtype, 100, generator) / 4]) for piece in pieces]


def _reciprocal_root_inputs(dtype: DType) -> list[Array]:
    """Numbers of moderate size: XLA on the CPU loses the smaller part by the rounding of an angle."""
    special = _grid(dtype, [0.0, -0.0, 0.5, 1.0, -1.5, 7.0, np.inf, -np.inf, np.nan])
    return [np.concatenate([special, _drawn(dtype, 100, np.random.default_rng(0)) + 1])]


def _convert(values: Any, target: str) -> Any:
    with jax.enable_x64(True):
        return lax.convert_element_type(values, dtype_named(target).numpy)


def _table(z: Any, dtype: str, size: int) -> Any:
    """Multiply by a constant of as many different numbers."""
    angles = np.arange(size) * 0.1
    return z * (np.cos(angles) + 1j * np.sin(angles)).astype(dtype_named(dtype).numpy)


def _product(z: Any) -> Any:
    return jnp.prod(z, 0)


def _rows(z: Any, i: Any) -> Any:
    return z.at[i].get(mode="fill", fill_value=1 - 2j)


def _rotation(z: Any, angle: Any) -> Any:
    return z * lax.complex(jnp.cos(angle), jnp.sin(angle))


def _mandelbrot(c: Any) -> Any:
    c = z = c / 16
    for _ in range(4):
        z = z * z + c
    return jnp.abs(z) < 1.5, z


_GENERAL: dict[str, tuple[Callable[..., Any], Callable[[str], tuple[str, ...]]]] = {
    "select": (lambda z, w: jnp.where(z.real > w.imag, z, w), lambda c: (f"{c}[331]",) * 2),
    "integer-power": (lambda z: (z**3, z**-2), lambda c: (f"{c}[331]",)),
    "constant": (lambda z: z * (0.25 - 2j) + 1j, lambda c: (f"{c}[331]",)),
    "transpose": (lambda z: z.T, lambda c: (f"{c}[33,65]",)),
    "reverse-and-slice": (lambda z: z[::-2, 1:], lambda c: (f"{c}[33,65]",)),
    "broadcast": (lambda z, w: z + w[:, None], lambda c: (f"{c}[33,65]", f"{c}[33]")),
    "pad": (lambda z: lax.pad(z, z[0, 0], ((1, 2, 1), (-1, 3, 0))), lambda c: (f"{c}[9,14]",)),
    "concatenate": (lambda z, w: jnp.concatenate([z, w * 2], 1), lambda c: (f"{c}[5,3]", f"{c}[5,4]")),
    "gather": (_rows, lambda c: (f"{c}[17,9]", "s32[23]")),
    "update": (
        lambda z, w, i: lax.dynamic_update_slice(z, w, (i[0], i[0] * 0 + 1)),
        lambda c: (f"{c}[9,7]", f"{c}[3,2]", "s32[1]"),
    ),
    "iota": (lambda z: z + lax.iota(z.dtype, 331), lambda c: (f"{c}[331]",)),
    "sum-rows": (lambda z: jnp.sum(z, 1), lambda c: (f"{c}[33,65]",)),
    "sum-columns": (lambda z: jnp.sum(z * 2j, 0), lambda c: (f"{c}[33,65]",)),
    "product": (_product, lambda c: (f"{c}[7,65]",)),
    "matrix-product": (lambda z, w: z @ w, lambda c: (f"{c}[9,17]", f"{c}[17,5]")),
    "vectorised": (lambda z, w: z * w + jnp.conj(z), lambda c: (f"{c}[517,1024]",) * 2),
    "vectorised-division": (lambda z, w: z / w, lambda c: (f"{c}[517,1024]",) * 2),
    "vectorised-odd": (lambda z: jnp.exp(z), lambda c: (f"{c}[701,803]",)),
    "vectorised-parts": (lambda z: (z.real, jnp.abs(z), z * 2), lambda c: (f"{c}[517,1024]",)),
    "vectorised-reverse": (lambda z: z[:, ::-1] * 2, lambda c: (f"{c}[517,1024]",)),
    "rotation": (_rotation, lambda c: (f"{c}[517,1024]", f"f{int(c[1:]) // 2}[1024]")),
    "mandelbrot": (_mandelbrot, lambda c: (f"{c}[601,1001]",)),
    "scalar": (lambda z: z * z, lambda c: (f"{c}[]",)),
    "empty": (lambda z: z * z, lambda c: (f"{c}[0,5]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for dtype in COMPLEX:
        element = dtype_named(dtype)
        for name, function in UNARY.items():
            inputs = partial(_reciprocal_root_inputs if name == "rsqrt" else _unary_inputs, element)
            yield TestProgram(f"{name}-{dtype}", function, (f"{dtype}[{inputs()[0].size}]",), inputs)
        for name, function in BINARY.items():
            inputs = partial(_power_inputs if name == "pow" else _binary_inputs, element)
            yield TestProgram(f"{name}-{dtype}", function, (f"{dtype}[{inputs()[0].size}]",) * 2, inputs)
        for name, (function, specs) in _GENERAL.items():
            yield TestProgram(f"{name}-{dtype}", function, specs(dtype))
        for size in (5, 1001):
            yield TestProgram(f"table-{size}-{dtype}", partial(_table, dtype=dtype, size=size), (f"{dtype}[{size}]",))
        for source in ALL:
            reals = partial(pairs, source, 1)
            spec = f"{source}[{reals()[0].size}]"
            yield TestProgram(f"convert-{source}-{dtype}", partial(_convert, target=dtype), (spec,), reals)
    for source, target in (COMPLEX, COMPLEX[::-1]):
        inputs = partial(_unary_inputs, dtype_named(source))
        yield TestProgram(
            f"convert-{source}-{target}", partial(_convert, target=target), (f"{source}[{_SIZE}]",), inputs
        )
