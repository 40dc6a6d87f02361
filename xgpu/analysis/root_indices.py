"""The operations that a kernel computes at the same indices as the values that it stores."""

from collections.abc import Callable, Iterator, Sequence

from xgpu import ir
from xgpu.analysis.in_place import SCATTER
from xgpu.indexing.access import identity_map, integer, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.structure import captured, defining_op, is_argument, producer

Stored = Callable[[ir.Value], bool]
"""Predicate of values that a kernel reads from memory: stored before it runs, or from around its block."""


def at_root_indices(roots: Sequence[ir.Value], stored: Stored) -> Iterator[ir.Operation]:
    """Yield the operations that are computed at the roots' own indices, roots first."""
    pending, seen = list(roots), set(roots)
    while pending:
        value = pending.pop()
        op = defining_op(value)
        if op is None or stored(value) or op.name == SCATTER:
            continue
        yield op
        if access_kind(op) != "elementwise":
            continue
        same = identity_map(shape_of(op.results[0]))
        operands = {op.operands[access.operand] for access in accesses(op) if access.map == same}
        pending += operands - seen
        seen |= operands


def read_at_root_indices(roots: Sequence[ir.Value], values: Sequence[ir.Value], stored: Stored) -> set[ir.Value]:
    """Return which of ``values``, stored ones, a kernel of these ``roots`` reads at the roots' own indices alone."""
    if not values:
        return set()
    own = set(at_root_indices(roots, stored))
    read, elsewhere = set[ir.Value](), set[ir.Value]()
    pending = list(own)
    seen = set(own)
    while pending:
        op = pending.pop()
        at_own = access_kind(op) == "elementwise" and op in own
        same = identity_map(shape_of(op.results[0]))
        for access in accesses(op):
            operand = op.operands[access.operand]
            (read if at_own and access.map == same else elsewhere).add(operand)
        for operand in (*op.operands, *captured(op)):
            if not is_argument(operand) and not stored(operand) and producer(operand) not in seen:
                seen.add(producer(operand))
                pending.append(producer(operand))
    return {value for value in values if value in read and value not in elsewhere}


def moves_elements(op: ir.Operation) -> bool:
    """Whether ``op`` moves parts of rows, for which kernels of other families read and write better."""
    if op.name != "stablehlo.concatenate":
        return op.name == "stablehlo.transpose"
    return integer(op, "dimension") == len(shape_of(op.results[0])) - 1
