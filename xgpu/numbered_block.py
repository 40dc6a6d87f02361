"""A block by numbers: its operations, and the values that these make and read.

Analyses that go through a block many times look values up in tables. A value of the bindings is slow to hash and to
compare, and a new object each time; a number is neither, and a table by numbers may be a list.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from xgpu import ir
from xgpu.structure import captured

type Number = int
"""The number of a value."""


class NumberedBlock:
    """The ``operations`` of a block, in order, which stay as they are as long as this is used.

    ``values`` has the values that they make and read by number, ``numbers`` the number of each, and ``makers`` for each
    the number of the operation that makes it, None if it comes from elsewhere. For each operation ``names`` has its
    name; ``results``, ``operands`` and ``captured`` have the numbers of these values, ``reads`` those of all that it
    reads, each once.
    """

    def __init__(self, operations: Sequence[ir.Operation]):
        self.operations = operations
        self.names = [op.name for op in operations]
        self.numbers: dict[ir.Value, Number] = {}
        self.results = [self._numbered(op.results) for op in operations]
        self.makers: list[int | None] = [number for number, made in enumerate(self.results) for _ in made]
        self.operands = [self._numbered(op.operands) for op in operations]
        self.captured = [self._numbered(captured(op)) for op in operations]
        both = zip(self.operands, self.captured, strict=True)
        self.reads = [tuple(dict.fromkeys(operands + inside)) for operands, inside in both]
        self.values = list(self.numbers)
        self.makers += [None] * (len(self.values) - len(self.makers))
        self._shapes: list[tuple[int, ...] | None] = [None] * len(self.values)
        self._elements: list[int | None] = [None] * len(self.values)

    def shape(self, value: Number) -> tuple[int, ...]:
        """Return the shape of an array."""
        found = self._shapes[value]
        if found is None:
            type_: Any = self.values[value].type
            found = self._shapes[value] = tuple(type_.shape)
        return found

    def elements(self, value: Number) -> int:
        """Return the number of elements of an array."""
        found = self._elements[value]
        if found is None:
            found = self._elements[value] = math.prod(self.shape(value))
        return found

    def _numbered(self, values: Iterable[ir.Value]) -> tuple[Number, ...]:
        numbers = self.numbers
        return tuple([numbers.setdefault(value, len(numbers)) for value in values])
