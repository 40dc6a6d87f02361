"""The pass `merge-rows`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.analysis.attention.visible_keys import visible_keys
from xgpu.costs.attention import fastest_seconds, gathering_seconds, tiles_of
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.dialects.chain import CHAIN
from xgpu.emit.families.attention.facts import chain_problem, chained_attention, sizes_of
from xgpu.passes.framework.base import OperationRewrite, main_of
from xgpu.passes.framework.remarks import remark
from xgpu.passes.prepare.chains.row_merging import MergedRows
from xgpu.passes.support.index_ops import erase_unused
from xgpu.records import dataclass
from xgpu.structure import backward_slice, in_order, replace_op

_FORMS = ((False, True), (False, False), (True, False))
"""Whether queries are gathered, and whether results are stored in the order of the program; the fastest comes first."""


@dataclass(frozen=True)
class MergeRows(OperationRewrite):
    """Makes one dimension of attention's rows that share keys, out of several or of a part of one.

    Blocks have tiles of rows along one dimension. If queries and heads that share keys were two dimensions, blocks
    would read the keys for each query, or for each head. A dimension whose keys are repeated is split into groups that
    share keys, and their members. Queries that do not lie in memory as rows at equal distances are gathered before.

    ```mlir
    %r = "xgpu.chain"(%q, %k, %v) ({ ... }) : (tensor<8x1x32x64xbf16>, tensor<8x4096x8x64xbf16>, ...) -> ...
    // becomes
    %m = "xgpu.chain"(%q, %k, %v) ({
      ...
      %s = stablehlo.reshape %logits : (tensor<8x32x1x4096xf32>) -> tensor<8x8x4x4096xf32>
      ...
    }) : ... -> tensor<8x8x4x64xbf16>
    %r = stablehlo.reshape %m : (tensor<8x8x4x64xbf16>) -> tensor<8x1x32x64xbf16>
    ```
    """

    NAME: ClassVar[str] = "merge-rows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((CHAIN,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""

    def check(self, module: ir.Module) -> None:
        """Raise `InvalidInput` for a module without ``main``. Chains are no operations of the frontend."""
        main_of(module)

    def rewrite(self, op: ir.Operation) -> None:
        """Merge the rows of a chain, if it is attention of which nothing but its result is stored."""
        attention = chained_attention(op)
        if attention is None or len(op.results) != 1 or attention.has_parts:
            return
        # What a mask says by the numbers of rows it says by those of one dimension.
        merged = None if visible_keys(attention) is not None else MergedRows.of(op, attention)
        if merged is None or not merged.is_possible:
            return
        for gathers, moves in _FORMS:
            if not self._is_faster(attention, merged, gathers):
                return
            made = merged.write(gathers, moves)
            problem = "queries have not all rows" if made is None else chain_problem(made)
            if made is not None and problem is None:
                replace_op(op, [made.results[0] if moves else merged.moved(made.results[0])])
                return
            if made is not None:
                gathering = list(backward_slice(made.operands, lambda value: value in op.operands))
                made.erase()
                erase_unused(in_order(gathering))
        remark(self.NAME, op, f"rows are left apart: {problem}")

    def _is_faster(self, attention: Attention, merged: MergedRows, gathers: bool) -> bool:
        """Whether tiles of merged rows are fewer and take no more time, with what gathers queries."""
        target, sizes = device(self.target), sizes_of(attention)
        other = sizes._replace(batch=merged.batch, rows=merged.rows)
        if tiles_of(other) >= tiles_of(sizes):
            return False
        more = gathering_seconds(other, target) if gathers else 0.0
        return fastest_seconds(other, target) + more <= fastest_seconds(sizes, target)
