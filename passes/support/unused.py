"""Erases what has been replaced, and all that only it needed."""

from collections.abc import Mapping, Sequence

from xgpu import ir
from xgpu.hlo.scan_op import ELEMENTWISE
from xgpu.hlo.stablehlo_builder import Value

_MOVING = frozenset(f"stablehlo.{name}" for name in "slice pad concatenate reverse constant broadcast_in_dim".split())
"""Operations of a scan that is written out, besides its combinations."""


def erase_unused(values: Sequence[Value], order: Mapping[ir.Operation, int]) -> None:
    """Erase what makes these values, and what only that needed, where nothing uses them; users come later in order."""
    pending, makers = list(values), set[ir.Operation]()
    while pending:
        value = pending.pop()
        op = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if op is not None and op in order and op not in makers and (op.name in ELEMENTWISE or op.name in _MOVING):
            makers.add(op)
            pending += op.operands
    for op in sorted(makers, key=lambda op: -order[op]):
        if next(iter(op.results[0].uses), None) is None:
            op.erase()
