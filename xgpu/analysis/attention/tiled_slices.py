"""Elementwise producers of values: the operations, each once, and the indices that are read of each.

Programs read values at several indices, such as stencils and sums of neighbours do. What such a chain starts from is
read at more indices with each step, so that following every index by itself takes exponential time.
"""

from collections.abc import Container, Sequence

from xgpu import ir
from xgpu.analysis.attention.places import DOT, is_tiled, then
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import defining_op


@dataclass(frozen=True)
class Indices:
    """The indices at which a value is read: those of ``map``, but for ``several`` of its results, which also differ.

    A value that is computed from such a result may still be read at one index; that is not found out.
    """

    map: IndexingMap
    several: frozenset[int] = frozenset()

    def then(self, access: IndexingMap) -> "Indices":
        """Return the indices of what a value reads by this map."""
        results = enumerate(access.results) if self.several else ()
        several = frozenset(number for number, each in results if not self.several.isdisjoint(each.variables()[0]))
        return Indices(then(self.map, access), several)

    def joined(self, other: "Indices") -> "Indices":
        """Return these indices and others of the same value."""
        if self.map == other.map:
            several = set[int]()
        elif (self.map.symbols, self.map.constraints) != (other.map.symbols, other.map.constraints):
            several = set(range(len(self.map.results)))
        else:
            pairs = zip(self.map.results, other.map.results, strict=True)
            several = {number for number, (own, another) in enumerate(pairs) if own != another}
        return Indices(self.map, self.several | other.several | several)


def tiled_slice(value: ir.Value, among: Container[ir.Value] | None = None) -> Sequence[ir.Operation]:
    """Return the operations that a value is computed from element by element, and where that ends.

    That is at products, and at what takes other elements than its own. Each comes after all that read it. Only what
    makes values ``among`` some is followed and returned, if these are given.
    """
    finished: dict[ir.Operation, None] = {}
    pending = [(defining_op(value), False)]
    while pending:
        op, is_read = pending.pop()
        if op is None or op in finished:
            continue
        if among is not None and op.results[0] not in among:
            continue
        if is_read or op.name == DOT or not is_tiled(op):
            finished[op] = None
        else:
            pending.append((op, True))
            # The last operand comes first in the result, so it is followed last.
            pending += [(defining_op(each), False) for each in reversed(op.operands)]
    return list(reversed(finished))


def is_of_product(value: ir.Value, known: dict[ir.Value, bool]) -> bool:
    """Whether a value is computed from a product element by element; ``known`` keeps what is found of others."""
    pending = [value]
    while pending:
        each = pending[-1]
        op = None if each in known else defining_op(each)
        if op is not None and op.name != DOT and is_tiled(op):
            missing = [operand for operand in op.operands if operand not in known]
            if missing:
                pending += missing
                continue
            known[each] = any(known[operand] for operand in op.operands)
        elif each not in known:
            known[each] = op is not None and op.name == DOT
        pending.pop()
    return known[value]
