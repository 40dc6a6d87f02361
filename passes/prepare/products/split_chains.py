"""The pass `split-chains`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.analysis.attention.visible_keys import visible_keys
from xgpu.costs.attention import kernel_seconds, split_keys, splits_of
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName, device
from xgpu.dialects.chain import CHAIN, returned
from xgpu.emit.families.attention.facts import chain_problem, chained_attention, sizes_of
from xgpu.passes.framework.base import OperationRewrite, main_of
from xgpu.passes.framework.remarks import remark
from xgpu.passes.prepare.chains.rewriting import moved_after
from xgpu.passes.prepare.chains.splitting import PartChain
from xgpu.records import dataclass
from xgpu.structure import replace_op, users_of

_MOST_LOOKED_AT = 64
"""Operations that compute from what is stored of rows that are looked at."""


@dataclass(frozen=True)
class SplitChains(OperationRewrite):
    """Splits the keys of attention among blocks where its rows are too few for all multiprocessors.

    The parts are one more dimension of the chain's logits and values, which are the arrays that they were: nothing is
    copied. For each part the chain returns its result as f32, the largest logit of each row, and the sum of the weights
    relative to it. Operations after it combine the parts.

    Parts have as many keys as some steps of 128, so that no step has keys of two; of the last one some may be missing,
    whose logits are -inf and whose values are zero.

    ```mlir
    %r = "xgpu.chain"(%q, %k, %v) ({ ... }) : ... -> tensor<8x64xbf16>
    // becomes, for 4 parts
    %parts:3 = "xgpu.chain"(%q, %k, %v) ({
      ...
      %s = stablehlo.reshape %logits : (tensor<8x4096xf32>) -> tensor<8x4x1024xf32>
      ...
    }) : ... -> (tensor<4x8x64xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
    %largest = stablehlo.reduce(%parts#1 init: %low) applies stablehlo.maximum across dimensions = [1] : ...
    ...
    ```
    """

    NAME: ClassVar[str] = "split-chains"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((CHAIN,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    parts: int = 0
    """The most parts there are; as many as make it fastest if it is 0."""

    def check(self, module: ir.Module) -> None:
        """Raise `InvalidInput` for a module without ``main``. Chains are no operations of the frontend."""
        main_of(module)

    def rewrite(self, op: ir.Operation) -> None:
        """Split the keys of a chain, if it is attention, unless chains of its gradient read what it stores of rows."""
        attention = chained_attention(op)
        if attention is None or attention.has_parts or _leads_to_chains(list(op.results)[1:]):
            return
        length = split_keys(attention.keys, self.parts or _splits(attention, device(self.target)))
        if length >= attention.keys:
            return
        split = PartChain(op, attention, length)
        if not split.is_possible:
            remark(self.NAME, op, "keys are left together: what rows are divided by is not computed of these alone")
            return
        parts = split.write()
        problem = chain_problem(parts)
        if problem is not None:
            remark(self.NAME, op, f"keys are left together: {problem}")
            parts.erase()
            return
        rows = split.combined_rows(parts, returned(op)[1:]) if len(op.results) > 1 else []
        replace_op(op, [moved_after(op, attention, split.combined(parts)), *rows])


def _leads_to_chains(values: Sequence[ir.Value]) -> bool:
    """Whether a chain reads what is computed from some values, among the first operations that are."""
    pending, seen = list(values), set[ir.Operation]()
    while pending and len(seen) < _MOST_LOOKED_AT:
        for user in users_of(pending.pop()):
            if user.name == CHAIN:
                return True
            if user not in seen:
                seen.add(user)
                pending += user.results
    return False


def _splits(attention: Attention, target: Device) -> int:
    """Return in how many parts the keys are fastest. Steps that a mask hides are left out only where there is one."""
    sizes = sizes_of(attention)
    splits, visible = splits_of(sizes, target), visible_keys(attention)
    if visible is not None:
        whole = sizes._replace(keys=visible.seen(attention.rows, attention.keys))
        return splits if kernel_seconds(sizes, target, splits) < kernel_seconds(whole, target) else 1
    return splits
