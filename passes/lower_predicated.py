"""The pass `lower-predicated`."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.threads import PredicatedExtractOp, PredicatedInsertOp
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.scf_ops import create_if, create_yield
from xgpu.records import dataclass
from xgpu.structure import replace_op, walk


@dataclass(frozen=True)
class LowerPredicated(Pass):
    """Turns `xgpu.predicated_extract` and `xgpu.predicated_insert` into `scf.if`.

    Needs: nothing. Run it before unswitch-loops, which takes a condition that a loop does not change out of it, so that
    the accesses left in the loop become those of vectors.

    ```mlir
    %x = "xgpu.predicated_extract"(%inside, %zero, %t, %i) : (i1, f32, tensor<100xf32>, index) -> f32
    ```
    becomes
    ```mlir
    %x = scf.if %inside -> (f32) {
      %y = tensor.extract %t[%i] : tensor<100xf32>
      scf.yield %y : f32
    } else {
      scf.yield %zero : f32
    }
    ```
    """

    NAME: ClassVar[str] = "lower-predicated"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        (PredicatedExtractOp.OPERATION_NAME, PredicatedInsertOp.OPERATION_NAME)
    )

    def apply(self, module: ir.Module) -> None:
        """Lower every predicated access of ``module``."""
        for op in walk(module.operation):
            if op.name == PredicatedExtractOp.OPERATION_NAME:
                condition, fallback, tensor, *indices = op.operands
                _lower(op, condition, ("tensor.extract", [tensor, *indices]), fallback)
            elif op.name == PredicatedInsertOp.OPERATION_NAME:
                condition, scalar, tensor, *indices = op.operands
                _lower(op, condition, ("tensor.insert", [scalar, tensor, *indices]), tensor)


def _lower(op: ir.Operation, condition: ir.Value, access: tuple[str, list[ir.Value]], otherwise: ir.Value) -> None:
    """Replace ``op`` by ``access``, a name and operands, where the condition holds, and by ``otherwise`` elsewhere."""
    name, operands = access
    with ir.InsertionPoint(op), op.location:
        conditional, inside, outside = create_if(condition, [otherwise.type])
        with ir.InsertionPoint(inside):
            made = ir.Operation.create(name, results=[otherwise.type], operands=operands)
            create_yield(list(made.results))
        with ir.InsertionPoint(outside):
            create_yield([otherwise])
    replace_op(op, list(conditional.results))
