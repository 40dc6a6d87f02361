"""Labels of a kernel's operations for messages: their text at level ``lowered``, and the user's source line.

Between ``lowered`` and ``llvm`` operations change and values lose their names, but locations stay: `label_operations`
puts the text there, and `place_of` finds it again.
"""

import io

from xgpu import ir
from xgpu.dialects.block.copies import COPY_OPS
from xgpu.dialects.block.matrices import MATRIX_OPS
from xgpu.dialects.block.waits import WAIT_OPS
from xgpu.errors import SourceLocation
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.base import functions
from xgpu.records import dataclass
from xgpu.structure import walk

_MARK = "xgpu lowered: "
_LABELLED = frozenset(
    (
        *"llvm.load llvm.store llvm.atomicrmw llvm.cmpxchg gpu.barrier xgpu.sync_warp gpu.shuffle".split(),
        *(op.OPERATION_NAME for op in (*COPY_OPS, *WAIT_OPS, *MATRIX_OPS)),
    )
)


@dataclass(frozen=True)
class SourceOperation:
    """An operation of a kernel: its text, and where in the user's source it came from, if known."""

    text: str
    location: SourceLocation | None


def label_operations(module: ir.Module) -> None:
    """Add, to the location of each operation of a ``lowered`` module that can fail, its text."""
    with module.context:
        for function in functions(module):
            state = ir.AsmState(function.operation)
            labels = [(op, _text(op, state)) for op in walk(function.operation) if op.name in _LABELLED]
            for op, text in labels:
                op.location = ir.Location.name(_MARK + text, op.location)


def place_of(op: ir.Operation, state: ir.AsmState) -> SourceOperation:
    """Return the place of an operation: its label's, or its own text; ``state`` names the values of its function."""
    location = op.location
    if isinstance(location, ir.NameLoc) and location.name_str.startswith(_MARK):
        return SourceOperation(location.name_str.removeprefix(_MARK), source_of(location.child_loc))
    return SourceOperation(_text(op, state), source_of(location))


def _text(op: ir.Operation, state: ir.AsmState) -> str:
    """Return an operation's text on one line, without its regions."""
    file = io.StringIO()
    op.print(state=state, file=file)
    return file.getvalue().split("\n", 1)[0].strip()
