"""Finds the values that are the same in all threads of a block."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.structure import block_of, defining_op, is_argument, made

_PURE = ("arith.", "index.")
_BLOCK = "gpu.block_id"
_FOR = "scf.for"


class UniformValues:
    """Tells values that are the same in all threads of a block; in doubt one is not."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def holds(self, value: ir.Value) -> bool:
        """Whether ``value`` follows from constants, block numbers and variables of loops that all threads run alike."""
        return made(value, self._known, lambda each: _sources(each) or (), _follows)


def _follows(value: ir.Value, sources: list[bool]) -> bool:
    return _sources(value) is not None and all(sources)


def _sources(value: ir.Value) -> Sequence[ir.Value] | None:
    """Return the values from which ``value`` follows, None where that depends on the thread or on memory."""
    if is_argument(value):
        loop = block_of(value).owner.operation
        if loop.name != _FOR or value != block_of(value).arguments[0]:
            return None
        first, _, step, *_ = loop.operands
        return [first, step]
    op = defining_op(value)
    assert op is not None
    if op.name.startswith(_PURE) and not op.regions:
        return list(op.operands)
    return [] if op.name == _BLOCK else None
