"""Random scans of neighbours combined level by level, as ``lax.associative_scan`` writes them: some in segments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import COMPLEX, PRED, Facts, computed, has_floats, integers, join, on_grid
from xgpu.tools.fuzzing.operands import companion

_LONGEST = 300

Arrays = list[int]


class _TooLarge(Exception):
    """An operation would be too much work."""


def recursive_scan(builder: Builder, value: int) -> int | None:
    """A scan of sums, extrema or linear steps; some of it starts again where a flag is set, or runs backwards."""
    random = builder.random
    shape = builder.type_of(value).shape
    axes = [i for i, size in enumerate(shape) if 1 < size <= _LONGEST]
    if not axes:
        return None
    axis = random.choice(axes)
    chosen = _combiner(builder, value, shape[axis])
    if chosen is None:
        return None
    name, facts = chosen
    arrays = [value]
    if name == "linear":
        arrays.append(companion(builder, value))
    elif random.random() < 0.7:
        arrays.append(builder.argument(PRED, shape))
    scan = _Scan(builder, axis, name, facts)
    dims = (axis,)
    reverse = random.random() < 0.3
    try:
        if reverse:
            arrays = [scan.one("reverse", (each,), builder.facts_of(each), dims=dims) for each in arrays]
        result = random.choice(scan(arrays))
        return scan.one("reverse", (result,), builder.facts_of(result), dims=dims) if reverse else result
    except _TooLarge:
        return None


def _combiner(builder: Builder, value: int, count: int) -> tuple[str, Facts] | None:
    """Return what combines up to ``count`` elements, whatever the order, and the facts of the result."""
    dtype, facts = builder.type_of(value).dtype, builder.facts_of(value)
    if facts.special:
        return None
    if dtype == PRED:
        return builder.random.choice(("and", "or", "xor")), Facts(0, 1)
    if dtype.is_integer:
        name = builder.random.choice(("add", "add", "multiply", "maximum", "linear", "linear"))
        return name, integers(dtype, -float("inf"), float("inf"))
    total = facts.magnitude * count
    exact = on_grid(dtype, -total, total, facts.grid) if facts.exact and facts.grid is not None else None
    if exact is not None and (dtype in COMPLEX or builder.random.random() < 0.6):
        return "add", exact
    return None if dtype in COMPLEX else ("maximum", computed(facts))


@dataclass(frozen=True)
class _Scan:
    """The scan along an axis: pairs are combined and scanned, and then combined with the elements between them."""

    builder: Builder
    axis: int
    name: str
    facts: Facts

    def __call__(self, arrays: Arrays) -> Arrays:
        """Return the scans of one value, of a value and flags, or of the two factors of linear steps."""
        size = self.builder.type_of(arrays[0]).shape[self.axis]
        if size < 2:
            return arrays
        pairs = self._combined(self._cut(arrays, 0, size - 1, 2), self._cut(arrays, 1, size, 2))
        odd = self(pairs)
        later = self._cut(arrays, 2, size, 2)
        rest = self._combined(self._cut(odd, 0, (size - 1) // 2, 1), later) if size > 2 else []
        first = self._cut(arrays, 0, 1, 1)
        even = [self._joined(*each) for each in zip(first, rest, strict=True)] if rest else first
        return [self._interleaved(*each, size) for each in zip(even, odd, strict=True)]

    def one(self, op: str, operands: Sequence[int], facts: Facts, **params: Any) -> int:
        """Add an operation and return its result. Raises `_TooLarge`."""
        result = self.builder.one(op, operands, facts, **params)
        if result is None:
            raise _TooLarge
        return result

    def _combined(self, before: Arrays, after: Arrays) -> Arrays:
        name, facts = self.name, self.facts
        if name == "linear":
            both = self.one("multiply", (after[0], before[0]), facts)
            scaled = self.one("multiply", (after[0], before[1]), facts)
            return [both, self.one("add", (scaled, after[1]), facts)]
        result = self.one(name, (before[0], after[0]), facts)
        if len(before) == 1:
            return [result]
        result = self.one("select", (after[1], after[0], result), facts, main=1)
        return [result, self.one("or", (before[1], after[1]), Facts(0, 1))]

    def _cut(self, arrays: Arrays, start: int, limit: int, stride: int) -> Arrays:
        made = []
        for value in arrays:
            shape = self.builder.type_of(value).shape
            starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
            starts[self.axis], limits[self.axis], strides[self.axis] = start, limit, stride
            params = {"starts": tuple(starts), "limits": tuple(limits), "strides": tuple(strides)}
            made.append(self.one("slice", (value,), self.builder.facts_of(value), **params))
        return made

    def _joined(self, first: int, rest: int) -> int:
        facts = join(self.builder.type_of(first).dtype, self.builder.facts_of(first), self.builder.facts_of(rest))
        return self.one("concatenate", (first, rest), facts, dimension=self.axis)

    def _interleaved(self, even: int, odd: int, size: int) -> int:
        """Return elements in turns: each array padded with zeros between its elements, and both added."""
        dtype, rank = self.builder.type_of(even).dtype, len(self.builder.type_of(even).shape)
        zero = self.builder.constant(dtype, (), Facts(0, 0, grid=0) if has_floats(dtype) else Facts(0, 0))
        known = join(dtype, *(self.builder.facts_of(each) for each in (even, odd, zero)))

        def along(number: int) -> tuple[int, ...]:
            return tuple(number if i == self.axis else 0 for i in range(rank))

        padded = []
        for value, low, high in ((even, 0, 1 - size % 2), (odd, 1, size % 2)):
            params = {"low": along(low), "high": along(high), "interior": along(1)}
            padded.append(self.one("pad", (value, zero), known, **params))
        return self.one("or" if dtype == PRED else "add", padded, known)
