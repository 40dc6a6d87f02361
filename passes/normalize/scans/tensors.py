"""Arrays of a program, as what a gradient is made of."""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.hlo.scan_op import build_scan
from xgpu.hlo.stablehlo_builder import Value, hlo, shape_of, splat, tensor
from xgpu.passes.normalize.scans.polynomials import Number, is_pred
from xgpu.structure import element_of


class Tensors:
    """Emits operations of StableHLO on arrays whose elements along ``dimension`` are in reverse if ``is_reversed``.

    Numbers are of the type ``element``. Positions are those of arrays that are not reversed.
    """

    def __init__(self, dimension: int, element: ir.Type, is_reversed: bool):
        self._dimension = dimension
        self._element = element
        self.is_reversed = is_reversed

    def apply(self, kind: str, operands: Sequence[Value | Number]) -> Value:
        """Return the result of an operation on arrays and numbers."""
        like = next(each for each in operands if not isinstance(each, int | float))
        values = [self.filled(each, like) if isinstance(each, int | float) else each for each in operands]
        element = self._element if kind == "convert" else element_of(values[-1])
        made = ir.Operation.create(f"stablehlo.{kind}", [tensor(shape_of(like), element)], values)
        return made.results[0]

    def filled(self, number: Number, like: Value) -> Value:
        """Return an array of the shape of another, of one number."""
        return self._splat(number, shape_of(like))

    def _splat(self, number: Number, shape: Sequence[int]) -> Value:
        return splat(number, tensor(shape, self._element))

    def part(self, value: Value, start: int, end: int) -> Value:
        """Return the elements from ``start`` until before ``end``."""
        shape, i = shape_of(value), self._dimension
        starts, ends = [0] * len(shape), list(shape)
        starts[i], ends[i] = (shape[i] - end, shape[i] - start) if self.is_reversed else (start, end)
        return hlo.slice(value, starts, ends, [1] * len(shape))

    def padded(self, value: Value, before: int, after: int) -> Value:
        """Return an array with zeros, or false, before and after its elements."""
        zero = splat(0, tensor([], element_of(value))) if is_pred(value) else self._splat(0, [])
        lows, highs, insides = ([0] * len(shape_of(value)) for _ in range(3))
        lows[self._dimension], highs[self._dimension] = (after, before) if self.is_reversed else (before, after)
        return hlo.pad(value, zero, lows, highs, insides)

    def joined(self, first: Value, second: Value) -> Value:
        """Return the elements of one array and then another's."""
        return hlo.concatenate([second, first] if self.is_reversed else [first, second], self._dimension)

    def scan(
        self, arrays: Sequence[Value], from_end: bool, combine: Callable[[list[Value]], Sequence[Value]]
    ) -> list[Value]:
        """Return the scans of arrays."""
        return build_scan(arrays, self._dimension, from_end != self.is_reversed, combine)
