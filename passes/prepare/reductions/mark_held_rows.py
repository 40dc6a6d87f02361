"""The pass `mark-held-rows`."""

import math
from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.heroes import SMALL_REDUCTION, Form, follow, is_hero, is_packed
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.costs.registers import FEWEST_COLUMNS
from xgpu.costs.values import elements, instructions
from xgpu.dialects.attributes import HELD
from xgpu.dialects.attributes import PRODUCT as PRODUCT_MARK
from xgpu.fusion.fallback import fallback_reason
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import backward_slice, block_of, defining_op, dtype_of, users_of

_MANY = 64
"""Instructions for a row's reductions from which on it takes longer to compute them again than to exchange them."""
_VECTOR_BITS = 128
"""Bits of a row that a thread loads at once; where they read longer rows, each its own, loads are far apart."""
_FEW = 2
"""Elements of a row that cost no more where they are computed again."""
_MOST_VISITED = 64
"""Operations that are looked at behind the reductions of a row, and before them."""


@dataclass(frozen=True)
class MarkHeldRows(BlockRewrite):
    """Marks reductions of short rows whose threads are to hold the rows, as they hold those of long ones.

    Reductions of up to eight elements are computed again by whatever reads them, as element-wise operations are: sums
    of three coordinates need no kernel. But what reads the row once more beside its reductions, as a softmax over eight
    classes does, would compute each of them for each element of the row, or store them. So would a reduction of what
    another one is a part of, where a thread computes neighbouring columns. One kernel of the rows computes all of it
    once, where all that follows is such or stored. Rows of more than 16 bytes, of which vectors begin at even places,
    are read by several threads side by side.
    Needs: reductions in their last shapes; all that says what XLA computes, which is stored.

    ```mlir
    %max = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : ...tensor<1024x8xf32>
    %shifted = stablehlo.subtract %x, (%max broadcast) : tensor<1024x8xf32>
    %e = stablehlo.exponential %shifted : tensor<1024x8xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : ...
    return (%e divided by %sum broadcast)
    ```
    becomes the same with
    ```mlir
    %max = stablehlo.reduce(...) {xgpu.held}
    %sum = stablehlo.reduce(...) {xgpu.held}
    ```
    """

    NAME: ClassVar[str] = "mark-held-rows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Mark the short reductions of ``block`` that pay."""
        for op in operations_of(block, self.OPERATIONS):
            if HELD not in op.attributes and _is_short(op):
                rows = _Rows(op)
                if rows.are_stored() and rows.pay():
                    for each in rows.reductions:
                        each.attributes[HELD] = ir.UnitAttr.get()


def _is_short(op: ir.Operation) -> bool:
    """Whether ``op`` is a reduction of few elements, such as threads can hold the rows or columns of."""
    if op.name != REDUCE or not is_commutative(op) or any(map(is_packed, (*op.results, *op.operands))):
        return False
    shape = ReductionShape.of(op)
    if not shape.results or not 1 < shape.per_result <= SMALL_REDUCTION or len(shape.reduced) != 1:
        return False
    return shape.is_rows or shape.kept[-1] >= FEWEST_COLUMNS


class _Rows:
    """All that follows a short reduction: reductions of the same rows, numbers of which a row has one, and rows."""

    def __init__(self, first: ir.Operation):
        self._shape = ReductionShape.of(first)
        self.reductions = [first]
        # The form of each number of a row, None for whole rows.
        self._forms: dict[ir.Value, Form | None] = {value: Form.of_hero(value) for value in first.results}
        self._stored, self._left = set[ir.Value](), set[ir.Value]()
        self._is_known = self._follow()

    def are_stored(self) -> bool:
        """Whether all that follows is computed with the rows, or reads what is stored anyway."""
        return self._is_known and self._left <= self._stored

    def pay(self) -> bool:
        """Whether a kernel of the rows is expected to be faster than loops that compute the reductions again."""
        length, is_column = self._shape.per_result, not self._shape.is_rows
        widest = max(dtype_of(value).storage_bits for op in self.reductions for value in op.operands)
        if not is_column and length * widest > _VECTOR_BITS and not length % 2 and self._are_in_memory():
            return True
        if any(self._forms[value] is None for value in self._stored):
            return length > _FEW or self._work(self.reductions) >= _MANY
        *read_again, _ = self.reductions
        is_many = is_column and length > _FEW + 1
        return bool(read_again) and (is_many or length * self._work(read_again) >= _MANY)

    def _follow(self) -> bool:
        """Find all that follows; returns whether that is few operations."""
        pending, seen = list(self._forms), 0
        while pending:
            value = pending.pop()
            for user in users_of(value):
                seen += 1
                if seen > _MOST_VISITED:
                    return False
                if user.block != block_of(value) or _stores(user):
                    self._stored.add(value)
                elif any(each in self._forms for each in user.results):
                    continue
                elif self._takes(user, value):
                    pending += user.results
                else:
                    self._left.add(value)
        return True

    def _takes(self, user: ir.Operation, value: ir.Value) -> bool:
        """Whether ``user`` computes more of the rows of ``value``, its operand, of which note is taken then."""
        form = self._forms[value]
        if form is None and _is_short(user) and ReductionShape.of(user) == self._shape:
            self.reductions.append(user)
            self._forms |= {result: Form.of_hero(result) for result in user.results}
            return True
        if user.name not in OPERATIONS or len(user.results) != 1:
            return False
        (result,) = user.results
        kind, shape = access_kind(user), shape_of(result)
        if form is not None and math.prod(shape) == self._shape.results:
            found = follow(user, [form if each == value else None for each in user.operands])
            if found is not None:
                self._forms[result] = found
            return found is not None
        if math.prod(shape) != self._shape.elements:
            return False
        if form is None:
            is_row = kind == "elementwise" or is_bitcast(user)
        else:
            reads = accesses(user)
            is_row = kind == "indexing" and len(reads) == 1 and not reads[0].runtime
            is_row = is_row and reads[0].map.compose(form.backward).simplify() == self._shape.row_map_of(shape)
        if is_row:
            self._forms[result] = None
        return is_row

    def _are_in_memory(self) -> bool:
        """Whether an array as large as the rows is read: what is computed of smaller ones is in caches."""
        for op in islice(backward_slice(self.reductions[0].operands, self._stops), _MOST_VISITED):
            if any(self._stops(each) and elements(each) >= self._shape.elements for each in op.operands):
                return True
        return any(self._stops(each) and elements(each) >= self._shape.elements for each in self.reductions[0].operands)

    def _work(self, reductions: Sequence[ir.Operation]) -> int:
        """Return about how many instructions it is to compute ``reductions`` of a row."""
        total = 0
        for op in reductions:
            before = islice(backward_slice(op.operands, self._stops), _MOST_VISITED)
            total += self._shape.per_result * (1 + sum(map(instructions, before)))
        return total

    def _stops(self, value: ir.Value) -> bool:
        """Whether ``value`` is in memory, or a result of these reductions."""
        op = defining_op(value)
        return op is None or op in self.reductions or is_hero(op) or fallback_reason(op) is not None


def _stores(user: ir.Operation) -> bool:
    """Whether what ``user`` reads is stored for it: it ends a block, is computed by XLA, or by a kernel of a product.

    Not for a loop, which may become a kernel that computes what it starts from.
    """
    if user.name == "stablehlo.while":
        return False
    return user.name not in OPERATIONS or fallback_reason(user) is not None or PRODUCT_MARK in user.attributes
