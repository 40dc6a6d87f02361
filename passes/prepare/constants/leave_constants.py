"""The pass `leave-constants`."""

import math
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.in_place import SCATTER
from xgpu.dialects.attributes import FALLBACK, RECURRENCE
from xgpu.hlo.constants import splat_of
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass

_LARGE = 1 << 12
"""Elements from which on a constant is left to XLA."""
_MANY = "XLA has so many numbers in memory once, each kernel would have them in its text"
_READ = "its reader reads it in memory, where XLA has it before the program runs"


@dataclass(frozen=True)
class LeaveConstants(OperationRewrite):
    """Leaves constants to XLA that kernels would otherwise have in their text, or store in each run.

    A kernel has the elements of a constant as a table of its own. That is 18 bytes of PTX for each f32, which the
    driver compiles when the program is loaded (1.3 s for a million), for every kernel that reads it. XLA has such an
    array in memory once. So it has one that is read there anyway, the indices or the updates of a scatter, which a
    kernel would copy in each run. Constants of one number stay, or of none, as do those in loops that are one kernel,
    which have no memory but arguments and states. With ``products=all`` nothing is left to XLA.
    Needs: products to be marked, and loops that are one kernel.

    ```mlir
    %0 = stablehlo.constant dense<"0x..."> : tensor<65536xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.constant {xgpu.fallback = "..."} dense<"0x..."> : tensor<65536xf32>
    ```
    """

    NAME: ClassVar[str] = "leave-constants"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.constant",))

    products: Literal["auto", "library", "kernels", "all"] = "auto"
    """The code that computes matrix products."""

    def rewrite(self, op: ir.Operation) -> None:
        """Mark a constant, if XLA is to have it."""
        if (
            self.products == "all"
            or splat_of(op) is not None
            or not math.prod(shape_of(op.results[0]))
            or (op.parent is not None and RECURRENCE in op.parent.attributes)
        ):
            return
        if not isinstance(op.attributes["value"], ir.DenseElementsAttr):
            return
        if math.prod(shape_of(op.results[0])) >= _LARGE:
            op.attributes[FALLBACK] = ir.StringAttr.get(_MANY)
        elif any(map(_is_read_in_memory, op.results[0].uses)):
            op.attributes[FALLBACK] = ir.StringAttr.get(_READ)


def _is_read_in_memory(use: ir.OpOperand) -> bool:
    """Whether a use is the indices or the updates of a scatter."""
    user = use.owner.operation
    return user.name == SCATTER and use.operand_number >= len(user.results)
