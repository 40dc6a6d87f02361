"""The order of a program's operations, and what is erased in that order."""

from collections.abc import Iterable, Sequence

from xgpu import ir
from xgpu.hlo.scan_op import ELEMENTWISE, SCAN
from xgpu.hlo.stablehlo_builder import Value
from xgpu.structure import defining_op, is_used, walk

_MOVING = frozenset(f"stablehlo.{name}" for name in "slice pad concatenate reverse constant broadcast_in_dim".split())
"""Operations of a scan that is written out, besides its combinations and scans."""


class ProgramOrder:
    """The operations of a module that have results, as they are now, and their places among those of a block.

    Places are kept by results: an operation's hash is another one once its operands are replaced.
    """

    def __init__(self, module: ir.Module):
        self.operations = [op for op in walk(module.operation, post_order=False) if len(op.results)]
        self._places: dict[Value, float] = {op.results[0]: number for number, op in enumerate(self.operations)}

    def add(self, copy: Value, original: Value) -> None:
        """Note that what makes a copy stands right after what makes the original, or at the start of its block."""
        owner = original.owner
        self._places[copy] = -1 if isinstance(owner, ir.Block) else self.place(owner.operation) + 0.5

    def place(self, op: ir.Operation) -> float:
        """Return the place of an operation."""
        return self._places[op.results[0]]

    def last(self, operations: Iterable[ir.Operation | None], block: ir.Block) -> ir.Operation | None:
        """Return the last one of those of the operations that are in a block, None if none of them is."""
        here = [op for op in operations if op is not None and op.block == block]
        return max(here, key=self.place, default=None)

    def erase_unused(self, values: Sequence[Value]) -> None:
        """Erase what makes these values, and what only that needed, where nothing uses them."""
        pending, seen = list(values), set[Value]()
        makers: list[tuple[float, ir.Operation]] = []
        while pending:
            value = pending.pop()
            op = defining_op(value)
            first = None if op is None or not _is_erasable(op) else op.results[0]
            if op is not None and first in self._places and first not in seen:
                seen.add(first)
                makers.append((self._places[first], op))
                pending += op.operands
        for _, op in sorted(makers, key=lambda maker: maker[0], reverse=True):
            if not is_used(*op.results):
                op.erase()


def _is_erasable(op: ir.Operation) -> bool:
    return op.name in ELEMENTWISE or op.name in _MOVING or op.name == SCAN
