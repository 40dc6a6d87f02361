"""The arithmetic of `MathBuilder` on NumPy arrays of f32, as the GPU does it: with its approximate instructions.

Each instruction's result is off by a random part of the largest error that the PTX manual gives for it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xgpu.passes.math.builder import LAYOUTS, MathBuilder
from xgpu.target_machine import NVVM

type Array = np.ndarray[Any, Any]
Helpers = Mapping[str, Callable[..., Sequence[Any]]]

_F32, _F64, _SIGNED, _UNSIGNED = np.float32, np.float64, np.int32, np.uint32
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "olt": np.less, "ole": np.less_equal, "ogt": np.greater, "oge": np.greater_equal, "oeq": np.equal,
    "une": np.not_equal, "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip


class GpuArithmetic(MathBuilder):
    """Computes where `MathBuilder` creates operations. Values are arrays of one size; wide integers are uint64."""

    def __init__(self, size: int, grade: int, helpers: Helpers):
        self.machine, self.bits, self.grade = NVVM, 32, grade
        self.layout = LAYOUTS[32]
        self.call = lambda name, operands: list(helpers[name](self, *operands))
        self._size = size
        self._generator = np.random.default_rng(0)

    def number(self, value: Any) -> Any:
        return value if isinstance(value, np.ndarray) else np.full(self._size, value, _F32)

    def whole(self, value: Any, type_: Any = None) -> Any:
        if isinstance(value, np.ndarray):
            return value
        if type_ == np.uint64:
            return np.full(self._size, value % (1 << 64), np.uint64)
        return np.full(self._size, value % (1 << 32), _UNSIGNED).view(_SIGNED)

    def add(self, a: Any, b: Any) -> Any:
        return self.number(a) + self.number(b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.number(a) - self.number(b)

    def mul(self, a: Any, b: Any) -> Any:
        return self.number(a) * self.number(b)

    def div(self, a: Any, b: Any) -> Any:
        return self.number(a) / self.number(b)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        # Exact but for sums of more than 53 bits, which are rounded twice.
        return _fma(*(self.number(each) for each in (a, b, c))).astype(_F32)

    def neg(self, a: Any) -> Any:
        return -self.number(a)

    def abs(self, a: Any) -> Any:
        return np.abs(self.number(a))

    def sqrt(self, a: Any) -> Any:
        return np.sqrt(self.number(a))

    def trunc(self, a: Any) -> Any:
        return np.trunc(self.number(a))

    def at_least(self, a: Any, low: float) -> Any:
        return np.maximum(self.number(a), self.number(low))

    def at_most(self, a: Any, high: float) -> Any:
        return np.minimum(self.number(a), self.number(high))

    def clamp_number(self, a: Any, low: float, high: float) -> Any:
        return np.fmin(np.fmax(self.number(a), self.number(low)), self.number(high))

    def compare(self, predicate: str, a: Any, b: Any) -> Any:
        return _COMPARISONS[predicate](self.number(a), self.number(b))

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, self.number(a), self.number(b))

    def both(self, a: Any, b: Any) -> Any:
        return a & b

    def either(self, a: Any, b: Any) -> Any:
        return a | b

    def differ(self, a: Any, b: Any) -> Any:
        return a ^ b

    def not_(self, a: Any) -> Any:
        return ~a

    def to_bits(self, a: Any) -> Any:
        return self.number(a).view(_SIGNED)

    def from_bits(self, a: Any) -> Any:
        return self.whole(a).view(_F32)

    def from_signed(self, a: Any) -> Any:
        return a.astype(_F32)

    def from_unsigned(self, a: Any) -> Any:
        return a.view(_UNSIGNED).astype(_F32)

    def integer_add(self, a: Any, b: Any) -> Any:
        return a + self.whole(b, a.dtype)

    def integer_sub(self, a: Any, b: Any) -> Any:
        type_ = next(each.dtype for each in (a, b) if isinstance(each, np.ndarray))
        return self.whole(a, type_) - self.whole(b, type_)

    def integer_mul(self, a: Any, b: Any) -> Any:
        return a * self.whole(b, a.dtype)

    def integer_and(self, a: Any, b: Any) -> Any:
        return a & self.whole(b, a.dtype)

    def integer_or(self, a: Any, b: Any) -> Any:
        return a | self.whole(b, a.dtype)

    def integer_xor(self, a: Any, b: Any) -> Any:
        return a ^ self.whole(b, a.dtype)

    def shift_left(self, a: Any, amount: Any) -> Any:
        return a << self.whole(amount, a.dtype)

    def shift_right(self, a: Any, amount: Any, signed: bool = False) -> Any:
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        shifted = a if signed else a.view(unsigned)
        return (shifted >> self.whole(amount, a.dtype).view(shifted.dtype)).view(a.dtype)

    def compare_integers(self, predicate: str, a: Any, b: Any) -> Any:
        b = self.whole(b, a.dtype)
        if predicate == "slt":
            signed = np.dtype(f"i{a.dtype.itemsize}")
            return a.view(signed) < b.view(signed)
        return {"eq": np.equal, "ne": np.not_equal}[predicate](a, b) if predicate != "uge" else _at_least(a, b)

    def integer_select(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)

    def leading_zeros(self, a: Any) -> Any:
        upper = (a >> np.uint64(32)).astype(_F64)
        lower = (a & np.uint64(0xFFFFFFFF)).astype(_F64)
        _, bits = np.frexp(np.where(upper > 0, upper, lower))
        return (64 - np.where(upper > 0, bits + 32, bits)).astype(np.uint64)

    def widen(self, a: Any) -> Any:
        return a.view(_UNSIGNED).astype(np.uint64)

    def narrow(self, a: Any) -> Any:
        return a.astype(_UNSIGNED).view(_SIGNED)

    def if_rare(self, condition: Any, compute: Callable[[], Sequence[Any]], otherwise: Sequence[Any]) -> list[Any]:
        return [np.where(condition, far, near) for far, near in zip(compute(), otherwise, strict=True)]

    def _has_code_in(self, a: Any, low: int, high: int) -> Any:
        return (self.to_bits(a) - _SIGNED(low)).view(_UNSIGNED) < high - low

    def instruction(self, name: str, *operands: Any) -> Any:
        return _INSTRUCTIONS[NVVM.fast_instructions[name]](
            self._generator, *(self.number(operand) for operand in operands)
        )


def _at_least(a: Array, b: Array) -> Array:
    return a.view(_UNSIGNED) >= b.view(_UNSIGNED)


def _fma(a: Array, b: Array, c: Array) -> Array:
    return a.astype(_F64) * b.astype(_F64) + c.astype(_F64)


def _rounded_down(exact: Array) -> Array:
    near = exact.astype(_F32)
    return np.where(near > exact, np.nextafter(near, _F32(-np.inf)), near)


def _flushed(x: Array) -> Array:
    """Subnormal numbers taken for zero, in f64."""
    return np.where(np.abs(x) < 2.0**-126, np.copysign(0.0, x), x.astype(_F64))


def _off(generator: np.random.Generator, exact: Array, relative: float, flushes: bool) -> Array:
    found = (exact * (1 + relative * generator.uniform(-1, 1, exact.shape))).astype(_F32)
    return _flushed(found).astype(_F32) if flushes else found


def _approximate(
    function: Callable[[Array], Array], relative: float, flushes: bool = False
) -> Callable[[np.random.Generator, Array], Array]:
    def compute(generator: np.random.Generator, x: Array) -> Array:
        return _off(generator, function(_flushed(x) if flushes else x.astype(_F64)), relative, flushes)

    return compute


def _logarithm(flushes: bool) -> Callable[[np.random.Generator, Array], Array]:
    def compute(generator: np.random.Generator, x: Array) -> Array:
        exact = np.log2(_flushed(x) if flushes else x.astype(_F64))
        error = 2.0**-22 * generator.uniform(-1, 1, exact.shape) * np.where((x > 0.5) & (x < 2), 1.0, exact)
        # Powers of two, zero and infinity have exact results.
        return np.where(exact == np.round(exact), exact, exact + error).astype(_F32)

    return compute


def _inverse_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


_INSTRUCTIONS: dict[str, Callable[..., Array]] = {
    "llvm.nvvm.add.rm.f": lambda _, a, b: _rounded_down(a.astype(_F64) + b),
    "llvm.nvvm.fma.rm.f": lambda _, a, b, c: _rounded_down(_fma(a, b, c)),
    "llvm.nvvm.fma.rn.sat.f": lambda _, a, b, c: np.clip(np.nan_to_num(_fma(a, b, c), nan=0.0), 0.0, 1.0).astype(_F32),
    "llvm.nvvm.div.full": lambda generator, a, b: _off(generator, a.astype(_F64) / b, 2.0**-22, False),
    "llvm.nvvm.sqrt.approx.f": _approximate(np.sqrt, 2.0**-23),
    "llvm.nvvm.sqrt.approx.ftz.f": _approximate(np.sqrt, 2.0**-23, flushes=True),
    "llvm.nvvm.rcp.approx.ftz.f": _approximate(np.reciprocal, 2.0**-23, flushes=True),
    "llvm.nvvm.div.approx.f": lambda generator, a, b: _off(generator, a.astype(_F64) / b, 2.0**-22, False),
    "llvm.nvvm.rsqrt.approx.ftz.f": _approximate(_inverse_root, 2.0**-22.9, flushes=True),
    "llvm.nvvm.rsqrt.approx.f": _approximate(_inverse_root, 2.0**-22.9),
    "llvm.nvvm.ex2.approx.ftz.f32": _approximate(np.exp2, 2.0**-22.5, flushes=True),
    "llvm.nvvm.lg2.approx.ftz.f": _logarithm(flushes=True),
    "llvm.nvvm.lg2.approx.f": _logarithm(flushes=False),
}
"""The instructions and their largest errors, from the PTX manual."""
