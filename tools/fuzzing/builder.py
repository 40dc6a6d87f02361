"""A graph under construction: adds operations, finds or makes operands, and bounds the work that a graph asks for."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from xgpu.dtypes import DType
from xgpu.tools.fuzzing.facts import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    PACKED,
    PRED,
    SIGNED,
    SMALL_FLOATS,
    Facts,
    has_floats,
    integer_range,
    largest,
    on_grid,
    whole_range,
)
from xgpu.tools.fuzzing.graph import Graph, Node, Value
from xgpu.tools.fuzzing.ops import Shape, TensorType, infer

_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 100, 127, 128, 129, 256)
_WEIGHTS = (0.3, 6, 8, 8, 6, 6, 6, 6, 4, 4, 3, 3, 4, 3, 2, 1, 2, 3, 2, 1)
_TYPES = {FLOATS: 42, SMALL_FLOATS: 3, PACKED: 5, COMPLEX: 5, ALL: 45}

_MOVES = frozenset(
    """bitcast_convert branches broadcast_in_dim concatenate convolution dot_general dynamic_slice
    dynamic_update_slice factor gather pad reduce reduce_window reshape reverse rng_bit_generator scan scatter
    select_and_scatter slice solution sort top_k transpose whiles""".split()
)
"""Operations that read elements at other indices than their results'."""

MAX_WORK = 2e7
"""Scalar operations that computing a value may take: it is what a thread of the host executor does in a second."""


class Builder:
    """``limit`` is the largest number of elements of a value."""

    def __init__(self, seed: int, limit: int):
        self.random = random.Random(seed)
        self.seed = seed
        self.limit = limit
        self.nodes: list[Node] = []
        self.values: dict[int, Value] = {}
        self._used: set[int] = set()
        # Per value: the operations that it evaluates at its own indices, each with the work of one evaluation.
        self._local: dict[int, dict[int, float]] = {}

    def type_of(self, value: int) -> TensorType:
        """Type of a value."""
        return self.values[value].type

    def facts_of(self, value: int) -> Facts:
        """The facts known of a value."""
        return self.values[value].facts

    def graph(self, outputs: Sequence[int]) -> Graph:
        """Return the graph of these outputs, without what they do not need."""
        return Graph(tuple(self.nodes), tuple(outputs), dict(self.values), self.seed).pruned()

    def add(self, op: str, operands: Sequence[int], facts: Facts | Sequence[Facts], **params: Any) -> list[int] | None:
        """Add an operation and return its results, or None if they would be too large or too much work.

        Raises `Invalid` if the operands' types do not fit.
        """
        types = infer(op, params, [self.type_of(value) for value in operands])
        many = (facts,) if isinstance(facts, Facts) else tuple(facts)
        results = list(range(len(self.values), len(self.values) + len(types)))
        local = self._work(op, operands, types, results[0], params)
        if operands:
            largest = max(_padded_size(op, params, self.type_of(operands[0])), *(t.size for t in types))
            if largest > self.limit or sum(local.values()) * max(1, types[0].size) > MAX_WORK:
                return None
        for result, type_, known in zip(results, types, many, strict=True):
            self.values[result] = Value(type_, known)
            self._local[result] = local
        self._used.update(operands)
        self.nodes.append(Node(op, tuple(operands), params, tuple(results)))
        return results

    def one(self, op: str, operands: Sequence[int], facts: Facts, **params: Any) -> int | None:
        """Add an operation of one result and return it, or None as `add` does."""
        results = self.add(op, operands, facts, **params)
        return results[0] if results else None

    def _work(
        self, op: str, operands: Sequence[int], types: Sequence[TensorType], number: int, params: Mapping[str, Any]
    ) -> dict[int, float]:
        """Operations read at other indices are evaluated for every read, those read at the same ones once."""
        shape = types[0].shape
        moves = op in _MOVES
        local: dict[int, float] = {number: 1.0}
        for operand in operands:
            inner = self._local[operand]
            type_ = self.type_of(operand)
            if not moves and type_.shape == shape:
                local |= inner
            else:
                repeats = _reads_per_result(op, type_, types[0], params)
                local[number] += sum(inner.values()) * max(1, repeats)
        return local

    # Leaves.

    def size(self) -> int:
        """Return a random extent: small, odd, and around the sizes of warps and blocks."""
        return self.random.choices(_SIZES, _WEIGHTS)[0]

    def shape(self) -> Shape:
        """Return a random shape within the limit."""
        rank = self.random.choices(range(8), (2, 6, 10, 6, 2, 1, 0.8, 0.6))[0]
        # Of many dimensions, most are small: others would be cut off.
        shape = tuple(self.size() if rank < 6 else self.random.choice((1, 2, 2, 3)) for _ in range(rank))
        while TensorType(PRED, shape).size > self.limit // 4:
            shape = shape[1:]
        return shape

    def dtype(self) -> DType:
        """Return a random element type."""
        (kind,) = self.random.choices(list(_TYPES), list(_TYPES.values()))
        return self.random.choice(kind)

    def index_dtype(self) -> DType:
        """Return a random type of indices."""
        return self.random.choice(INTEGERS if self.random.random() < 0.4 else SIGNED[2:])

    def fresh_facts(self, dtype: DType) -> Facts:
        """Return facts for a new argument or constant."""
        chance = self.random.random()
        if not has_floats(dtype):
            whole = whole_range(dtype)
            if dtype.kind == "bool" or chance < 0.4:
                return whole
            lo = max(whole.lo, self.random.choice((-9, -1, 0, 0, 1)))
            return Facts(lo, min(whole.hi, self.random.choice((1, 3, 9, 140))), pristine=True)
        special = chance > 0.85 and dtype.is_float
        if chance < 0.3:
            most = min(64.0, largest(dtype))
            lo = self.random.choice((-most, 2.0**-6))
            return Facts(lo, most, 2.0**-6, special=special, nonzero=lo > 0, pristine=True)
        lo, grid = self.random.choice((-8.0, -2.0, 0.0, 1.0)), self.random.choice((0, 0, 1, 2))
        hi = self.random.choice((2.0, 3.0, 8.0))
        grid = 0 if dtype in SMALL_FLOATS else grid
        facts = on_grid(dtype, lo, hi, grid, special=special, pristine=True)
        assert facts is not None
        return replace(facts, nonzero=lo > 0)

    def argument(self, dtype: DType, shape: Shape, facts: Facts | None = None) -> int:
        """Add an argument and return it."""
        return self._leaf("argument", facts or self.fresh_facts(dtype), shape, dtype=dtype)

    def constant(self, dtype: DType, shape: Shape, facts: Facts | None = None) -> int:
        """Add a constant and return it: a splat if it is large, else sometimes."""
        splat = TensorType(dtype, shape).size > 300 or self.random.random() < 0.5
        return self._leaf("constant", facts or self.fresh_facts(dtype), shape, dtype=dtype, splat=splat)

    def iota(self, dtype: DType, shape: Shape) -> int:
        """Add an iota and return it, or a constant where an iota cannot be."""
        dimension = self.random.randrange(len(shape)) if shape else 0
        last = max(0, shape[dimension] - 1) if shape else 0
        facts = on_grid(dtype, 0, last, 0) if has_floats(dtype) else Facts(0, min(last, integer_range(dtype)[1]))
        if not shape or facts is None or dtype.kind == "bool":
            return self.constant(dtype, shape)
        return self._leaf("iota", facts, shape, dtype=dtype, iota_dimension=dimension)

    def _leaf(self, op: str, facts: Facts, shape: Shape, **params: Any) -> int:
        value = self.one(op, (), facts, shape=shape, **params)
        if value is None:
            raise AssertionError(f"a leaf of shape {shape} is within the limits")
        return value

    # Operands.

    def pick(self, accept: Callable[[TensorType, Facts], bool] = lambda type_, facts: True) -> int | None:
        """Return a random acceptable value, unused and recent ones more often, or None."""
        found = [value for value, of in self.values.items() if accept(of.type, of.facts)]
        unused = [value for value in found if value not in self._used]
        if unused and self.random.random() < 0.7:
            found = unused
        return max(self.random.choice(found), self.random.choice(found)) if found else None

    def scalar(self, dtype: DType, facts: Facts) -> int:
        """Return a value of rank 0 within the bounds of ``facts``: an argument, a constant, or one of the graph's."""
        chance = self.random.random()
        if chance < 0.3:
            found = self.pick(
                lambda t, f: (t.dtype, t.shape) == (dtype, ()) and (_within(f, facts) or dtype.kind == "signed")
            )
            if found is not None:
                return found
        if chance < 0.5:
            return self.constant(dtype, (), facts)
        return self.argument(dtype, (), facts)


def _reads_per_result(op: str, operand: TensorType, result: TensorType, params: Mapping[str, Any]) -> float:
    """Return how many elements of an operand an element of a result reads."""
    if op == "reduce_window":
        return prod(params["window"])
    if op == "convolution":
        return prod(params["window"]) * params["features"]
    whole = op in ("reduce", "scan", "sort", "dot_general", "top_k", "whiles", "solution", "factor") and operand.shape
    return operand.size / max(1, result.size) if whole else 1


def _padded_size(op: str, params: Mapping[str, Any], operand: TensorType) -> int:
    """Return how many elements XLA makes of an operand of pad: it cuts what is negative only afterwards."""
    if op != "pad":
        return 0
    amounts = zip(operand.shape, params["low"], params["high"], params["interior"], strict=True)
    return prod(size * (inside + 1) + max(0, low) + max(0, high) for size, low, high, inside in amounts)


def _within(facts: Facts, bounds: Facts) -> bool:
    """Whether all elements that ``facts`` allow are allowed by ``bounds``."""
    in_range = bounds.lo <= facts.lo and facts.hi <= bounds.hi and facts.smallest >= bounds.smallest
    on_grid = bounds.grid is None or (facts.grid is not None and facts.grid <= bounds.grid)
    return in_range and on_grid and facts.exact and bounds.special >= facts.special and facts.nonzero >= bounds.nonzero
