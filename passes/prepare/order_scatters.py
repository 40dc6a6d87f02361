"""The pass `order-scatters`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import combiners, has_own_types, is_unordered
from xgpu.analysis.in_place import SCATTER, has_separate_places
from xgpu.dialects.attributes import ORDERED
from xgpu.indexing.scatter_maps import scatter_maps
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.prepare.scatters.builder import split_complex, split_results
from xgpu.passes.prepare.scatters.sums import MOST_WINDOWS, sum_in_any_order
from xgpu.passes.prepare.scatters.winners import keep_last_updates
from xgpu.records import dataclass
from xgpu.structure import dtype_of


@dataclass(frozen=True)
class OrderScatters(OperationRewrite):
    """Rewrites scatters whose updates of one place must be applied in their order.

    The order matters where several operands must agree on the last update, and everywhere if results must not depend on
    timing. Such a scatter becomes others whose order does not matter: of overwriting updates only the last of each
    place is kept, sums of floats become sums of integers. Where that cannot be done the scatter is marked, by
    ``xgpu.ordered``, to be run by one thread after the other. Conditions of loops are rewritten too, as XLA's scatters
    depend on timing as well. Needs: drop-empty-scatters.

    ```mlir
    %new = "stablehlo.scatter"(%x, %indices, %updates) ({ ... stablehlo.multiply ... })
        : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
    ```
    becomes, with deterministic=true
    ```mlir
    %new = "stablehlo.scatter"(%x, %indices, %updates) ({ ... stablehlo.multiply ... }) {xgpu.ordered}
        : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "order-scatters"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCATTER,))
    WITH_CONDITIONS: ClassVar[bool] = True
    deterministic: bool = False
    """Whether results must not depend on timing."""

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite one scatter if its result depends on the order of its updates."""
        if has_own_types(op):
            _remove_order(op, self.deterministic)


def _remove_order(op: ir.Operation, deterministic: bool) -> None:
    """Rewrite a scatter whose result depends on the order of its updates, if that is to be defined."""
    found = combiners(op)
    if has_separate_places(op) or not all(each.alone for each in found):
        return
    overwritten = [i for i, each in enumerate(found) if each.function == "overwrite"]
    others = [i for i in range(len(found)) if i not in overwritten]
    if not deterministic and len(overwritten) < 2:
        return
    parts = [*([overwritten] if overwritten else []), *([i] for i in others)]
    for part in split_results(op, parts) if len(found) > 1 else [op]:
        _remove_order_alone(part, deterministic)


def _remove_order_alone(op: ir.Operation, deterministic: bool) -> None:
    """Rewrite a scatter that overwrites all its operands, or has only one."""
    function = combiners(op)[0].function
    dtype = dtype_of(op.operands[0])
    if function == "overwrite":
        if not keep_last_updates(op):
            op.attributes[ORDERED] = ir.UnitAttr.get()
    elif not deterministic or is_unordered(op):
        return
    elif function == "add" and dtype.is_float and scatter_maps(op).windows < MOST_WINDOWS:
        sum_in_any_order(op)
    elif function == "add" and dtype.kind == "complex":
        for part in split_complex(op):
            _remove_order_alone(part, deterministic)
    else:
        op.attributes[ORDERED] = ir.UnitAttr.get()
