"""The operations that a kernel computes at the same indices as the values that it stores."""

from collections.abc import Callable, Iterator, Sequence

from xgpu import ir
from xgpu.analysis.in_place import SCATTER
from xgpu.indexing.access import identity_map, integer, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.structure import captured, defining_op

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
        operands = _at_own_indices(op)
        pending += operands - seen
        seen |= operands


def read_at_root_indices(roots: Sequence[ir.Value], values: Sequence[ir.Value], stored: Stored) -> set[ir.Value]:
    """Return which of ``values``, stored ones, a kernel of these ``roots`` reads at the roots' own indices alone.

    What is computed at the roots' indices may be computed at others too, where something moves it: then all that it
    reads is read there.
    """
    if not values:
        return set()
    own, moved = set(roots), set[ir.Value]()
    pending = [(value, True) for value in roots]
    while pending:
        value, at_own = pending.pop()
        op = defining_op(value)
        if op is None or stored(value):
            continue
        kept = _at_own_indices(op) if at_own else set[ir.Value]()
        for operand in (*op.operands, *captured(op)):
            found = own if operand in kept else moved
            if operand not in found:
                found.add(operand)
                pending.append((operand, operand in kept))
    return {value for value in values if value in own and value not in moved}


def _at_own_indices(op: ir.Operation) -> set[ir.Value]:
    """Return the operands of which an element of the result needs the same element alone."""
    if access_kind(op) != "elementwise":
        return set()
    same = identity_map(shape_of(op.results[0]))
    found = accesses(op)
    moved = {op.operands[access.operand] for access in found if access.map != same}
    return {op.operands[access.operand] for access in found} - moved


def moves_elements(op: ir.Operation) -> bool:
    """Whether ``op`` moves parts of rows, for which kernels of other families read and write better."""
    if op.name != "stablehlo.concatenate":
        return op.name == "stablehlo.transpose"
    return integer(op, "dimension") == len(shape_of(op.results[0])) - 1
