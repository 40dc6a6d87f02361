"""The pass `form-launches`."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.nests.loops import LaunchOp, NewOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.nests.structure import LAUNCH, PAR
from xgpu.passes.framework.base import Pass, functions
from xgpu.records import dataclass
from xgpu.structure import defining_op, walk


@dataclass(frozen=True)
class FormLaunches(Pass):
    """Divides a program into kernels: each outermost par loop, and the statements between two of them.

    The effects of a kernel are visible to the next one. Buffers that are made outside of all loops are in global
    memory. Statements outside of par loops are a kernel of one block.
    Needs: nothing.

    ```mlir
    "xgpu.par"() ({ ... }) {called = "i", extent = 64 : i64} : () -> ()
    "xgpu.seq"() ({ ... }) {called = "k", extent = 8 : i64} : () -> ()
    // becomes
    "xgpu.launch"() ({
      "xgpu.par"() ({ ... }) {called = "i", extent = 64 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) : () -> ()
    "xgpu.launch"() ({
      "xgpu.seq"() ({ ... }) {called = "k", extent = 8 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) : () -> ()
    ```
    """

    NAME: ClassVar[str] = "form-launches"

    def apply(self, module: ir.Module) -> None:
        """Divide every function of ``module``."""
        for function in functions(module):
            for group in _groups(function.entry_block):
                # Buffers that are made between statements of one kernel are there before it.
                with ir.InsertionPoint(group[-1]), group[0].location:
                    launch = LaunchOp.build()
                with ir.InsertionPoint(launch.body), group[0].location:
                    YieldOp.build([])
                end = list(launch.body.operations)[-1].operation
                for op in group:
                    op.move_before(end)
            _check_values(function.operation)


def _groups(block: ir.Block) -> list[list[ir.Operation]]:
    """Return the operations of each kernel: a par loop alone, others as many as follow each other."""
    groups: list[list[ir.Operation]] = []
    follows = False
    for view in list(block.operations):
        op = view.operation
        if op.name in (NewOp.OPERATION_NAME, LAUNCH, "func.return"):
            follows = follows and op.name == NewOp.OPERATION_NAME
            continue
        if op.name == PAR or not follows:
            groups.append([])
        groups[-1].append(op)
        follows = op.name != PAR
    return groups


def _check_values(function: ir.Operation) -> None:
    """Raise InvalidInput for an element that one kernel computes and another one uses."""
    for launch in walk(function, LAUNCH):
        inside = set(walk(launch))
        for op in inside:
            for operand in op.operands:
                made_by = defining_op(operand) if isinstance(operand.type, ir.RankedTensorType) else None
                if made_by is not None and made_by not in inside:
                    raise InvalidInput(
                        "a value that is computed outside of all loops is used inside of par: keep it in a buffer",
                        source_of(op),
                    )
