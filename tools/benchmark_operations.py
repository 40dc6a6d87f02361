"""Measures every elementwise operation against ``jax.jit``: ``python -m xgpu.tools.benchmark --all-ops``."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import xgpu
from xgpu.dtypes import dtype_named
from xgpu.errors import InvalidInput, XgpuError
from xgpu.tools import kernel_timing
from xgpu.tools.kernel_timing import Speeds
from xgpu.tools.programs.base import INTEGERS
from xgpu.tools.programs.scalars import complex_numbers, elementwise

TYPES = ("f32", "bf16", "f16", "f64", *INTEGERS, *complex_numbers.COMPLEX)
"""The types that operations can be measured in."""
WORST = 10
"""Number of the slowest operations that the table names again."""
_CONVERTED_TO = ("f32", "bf16", "f16", "f64", "s32", "s8", "u8", "pred")
# What arguments are made of normally distributed numbers by. Other functions take all numbers.
_DOMAINS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("acos", "asin", "atanh", "erf_inv"), jnp.tanh),
    **dict.fromkeys(("log", "log1p", "pow", "rsqrt", "sqrt"), jnp.abs),
    "acosh": lambda x: 1 + jnp.abs(x),
}
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

Measure = Callable[[Callable[..., Any], Callable[..., Any], Sequence[Any]], Speeds]


@dataclass(frozen=True)
class Operation:
    """An operation on arrays of the types ``arguments``, which are named as in HLO."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name and the type of the first operand that is no condition."""
        return f"{self.name} {next(each for each in self.arguments if each != 'pred')}"


def parse_bytes(text: str) -> int:
    """Return the number that ``256MiB`` and the like stand for; raises InvalidInput for anything else."""
    match = re.fullmatch(r"(\d+)\s*([KMG]iB)?", text)
    if match is None or int(match[1]) == 0:
        raise InvalidInput(f"expected a size such as 256MiB, got '{text}'")
    return int(match[1]) * _UNITS[match[2] or ""]


def parse_types(text: str) -> list[str]:
    """Return the types of a list such as ``f32,bf16``; raises InvalidInput for one that is not in `TYPES`."""
    for name in text.split(","):
        if name not in TYPES:
            raise InvalidInput(f"operations are measured in {', '.join(TYPES)}, not in '{name}'")
    return text.split(",")


def operations(dtype: str) -> list[Operation]:
    """Return every elementwise operation that has operands of a type."""
    if dtype in complex_numbers.COMPLEX:
        unary, binary = list(complex_numbers.UNARY.items()), list(complex_numbers.BINARY.items())
        part = "f32" if dtype == "c64" else "f64"
        return [*_table(unary, dtype, 1), *_table(binary, dtype, 2), Operation("complex", lax.complex, (part, part))]
    unary = [(name, each) for name, (each, types) in elementwise.UNARY.items() if dtype in types]
    binary = [(name, each) for name, (each, types) in elementwise.BINARY.items() if dtype in types]
    others = [
        Operation("clamp", lax.clamp, (dtype,) * 3),
        Operation("select", lax.select, ("pred", dtype, dtype)),
        *(Operation(f"convert to {to}", _converter(to), (dtype,)) for to in _CONVERTED_TO if to != dtype),
    ]
    if dtype_named(dtype).is_float:
        others.append(
            Operation("reduce_precision", partial(lax.reduce_precision, exponent_bits=5, mantissa_bits=10), (dtype,))
        )
    return [*_table(unary, dtype, 1), *_table(binary, dtype, 2), *others]


def _table(functions: Sequence[tuple[str, Callable[..., Any]]], dtype: str, arity: int) -> Iterator[Operation]:
    for name, function in functions:
        yield Operation(name, function, (dtype,) * arity)


def _converter(target: str) -> Callable[[Any], Any]:
    return partial(lax.convert_element_type, new_dtype=dtype_named(target).numpy)


class _Arrays:
    """Makes arguments on the GPU, those of one kind once; forgets those of other sizes."""

    def __init__(self, size: int):
        self._size = size
        self._made: dict[tuple[str, Any, int], jax.Array] = {}

    def arguments(self, operation: Operation) -> list[jax.Array]:
        """Return the operands of an operation: arrays of the size given, of numbers that it is made for."""
        elements = self._size // max(dtype_named(each).storage_bits // 8 for each in operation.arguments)
        domain = _DOMAINS.get(operation.name)
        limit = dtype_named(operation.arguments[0]).bits if operation.name.startswith("shift") else 100
        return [
            self._array(dtype, (elements, domain, limit), position)
            for position, dtype in enumerate(operation.arguments)
        ]

    def _array(self, dtype: str, kind: tuple[int, Any, int], position: int) -> jax.Array:
        key = dtype, kind, position
        if key not in self._made:
            if any(each[1][0] != kind[0] for each in self._made):
                self._made.clear()
            self._made[key] = kernel_timing.wait(_draw(dtype, *kind, jax.random.key(position)))
        return self._made[key]


def _draw(dtype: str, elements: int, domain: Callable[[Any], Any] | None, limit: int, key: jax.Array) -> jax.Array:
    target = dtype_named(dtype)
    if target.kind == "bool":
        return jax.random.bernoulli(key, shape=(elements,))
    if target.is_integer:
        low = -limit if target.is_signed and limit == 100 else 1
        return jax.random.randint(key, (elements,), low, limit, jnp.int32).astype(target.numpy)
    normal = jax.random.normal(key, (elements,), jnp.float32)
    return (normal if domain is None else domain(normal)).astype(target.numpy)


@dataclass(frozen=True)
class Report:
    """The measurements, by title, and the operations that were not measured, with the reason."""

    measured: dict[str, Speeds]
    skipped: dict[str, str]

    def text(self) -> str:
        """Return the table, the fastest first and the ten slowest last, after what was skipped."""
        ordered = sorted(self.measured.items(), key=lambda item: -item[1].ratio)
        slow = sum(speeds.ratio < 0.97 for _, speeds in ordered)
        lines = [f"skipped: {title}: {reason}" for title, reason in self.skipped.items()]
        lines += [kernel_timing.HEAD, *(speeds.line(title) for title, speeds in ordered[:-WORST])]
        lines += [
            f"the slowest {min(WORST, len(ordered))}:",
            *(speeds.line(title) for title, speeds in ordered[-WORST:]),
        ]
        return "\n".join([*lines, f"{len(ordered)} operations, {slow} below 0.97; {len(self.skipped)} skipped"])


def measure_operations(
    chosen: Sequence[Operation],
    size: int,
    seconds: float,
    measure: Measure,
    tell: Callable[[str], None] = lambda line: None,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """Measure operations on operands of ``size`` bytes, until ``seconds`` have passed; then the others are skipped.

    ``measure`` takes xgpu's function, XLA's, and the arguments. ``tell`` is given a line after each operation.
    ``clock`` returns the time in seconds.
    """
    start, arrays, report = clock(), _Arrays(size), Report({}, {})
    for number, operation in enumerate(chosen, 1):
        if clock() - start > seconds:
            report.skipped[operation.title] = f"{seconds:.0f} seconds had passed"
            continue
        try:
            with jax.enable_x64(True):
                arguments = arrays.arguments(operation)
                ours, theirs = jax.jit(xgpu.jit(operation.function)), jax.jit(operation.function)
                speeds = measure(ours, theirs, arguments)
        except (XgpuError, jax.errors.JaxRuntimeError, TypeError, ValueError) as error:
            report.skipped[operation.title] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
            continue
        report.measured[operation.title] = speeds
        tell(f"[{number}/{len(chosen)}] {speeds.line(operation.title)}")
    return report
