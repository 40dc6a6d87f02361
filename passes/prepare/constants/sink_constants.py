"""The pass `sink-constants`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.evaluator import is_known
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import behind, blocks_of, copy_operation, in_order, is_argument, is_result_of, producer

_SPREAD = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")
_MADE_ANYWHERE = ("stablehlo.constant", "stablehlo.iota")
_FEW = 16
"""Numbers, and operations that compute them, that are computed again in each block."""


@dataclass(frozen=True)
class SinkConstants(OperationRewrite):
    """Copies constants, and arrays of one constant, into the blocks of control flow that use them.

    A loop that adds one to an array of a million numbers would otherwise read a million ones from memory in each
    iteration, and XLA would fill that array again in each. A few numbers that are computed of constants, as those that
    say where a slice is updated, are copied with what computes them, and so is what they are spread over. What a loop
    is given as a part of its state, and hands on unchanged, is such a constant too. Conditions of loops get copies as
    well: a captured value is an operand of XLA's. Needs: nothing.

    ```mlir
    %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %result = "stablehlo.case"(%index) ({
      %sum = stablehlo.add %x, %ones : tensor<8xf32>
      stablehlo.return %sum : tensor<8xf32>
    }, ...) : (tensor<i32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %result = "stablehlo.case"(%index) ({
      %one_0 = stablehlo.constant dense<1.0> : tensor<f32>
      %ones_0 = stablehlo.broadcast_in_dim %one_0, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %sum = stablehlo.add %x, %ones_0 : tensor<8xf32>
      stablehlo.return %sum : tensor<8xf32>
    }, ...) : (tensor<i32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "sink-constants"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(CONTROL_FLOW)

    def rewrite(self, op: ir.Operation) -> None:
        """Give each block that ``op`` runs constants of its own."""
        if op.name == "stablehlo.while":
            _replace_unchanged_state(op)
        for block in blocks_of(op):
            _copy_into(block)


def _replace_unchanged_state(loop: ir.Operation) -> None:
    """Replace loop state that is constant and never changes by its initial value, in the loop's blocks."""
    condition, body = (region.blocks[0] for region in loop.regions)
    *_, terminator = body.operations
    for number, result in enumerate(terminator.operation.operands):
        argument, initial = body.arguments[number], loop.operands[number]
        if result == argument and _is_constant(initial):
            handed_on = (terminator.operation, number)
            uses = [use for use in argument.uses if (use.owner.operation, use.operand_number) != handed_on]
            _replace_uses(uses, body, initial)
            _replace_uses(list(condition.arguments[number].uses), condition, initial)


def _replace_uses(uses: Sequence[ir.OpOperand], block: ir.Block, initial: ir.Value) -> None:
    """Replace these operands of operations in ``block`` by a copy of ``initial``."""
    if uses:
        with ir.InsertionPoint.at_block_begin(block):
            copy = _copied(initial)
        for use in uses:
            use.owner.operation.operands[use.operand_number] = copy


def _copy_into(block: ir.Block) -> None:
    copies: dict[ir.Value, ir.Value] = {}
    for op in [view.operation for view in block.operations]:
        for number, operand in enumerate(op.operands):
            if not is_argument(operand) and producer(operand).block != block and _is_constant(operand):
                if operand not in copies:
                    with ir.InsertionPoint.at_block_begin(block):
                        copies[operand] = _copied(operand)
                op.operands[number] = copies[operand]


def _is_constant(value: ir.Value) -> bool:
    """Whether ``value`` is made of constants without reading memory, or of a few numbers computed of constants."""
    return _made_of(value) is not None


def _made_of(value: ir.Value) -> list[ir.Operation] | None:
    """Return the operations that make a constant of nothing, in any order; None for another value."""
    if (computed := _few_numbers(value)) is not None:
        return computed
    base = behind(value, *_SPREAD)
    if is_result_of(base, *_MADE_ANYWHERE):
        return [*_spread(value), producer(base)]
    computed = None if is_argument(base) else _few_numbers(base)
    return None if computed is None else [*_spread(value), *computed]


def _few_numbers(value: ir.Value) -> list[ir.Operation] | None:
    """Return the operations that compute a few numbers of constants alone, in any order; None if others do.

    Such are the places of slices that are updated, which the gradients of updates put together of single numbers.
    """
    found: dict[ir.Operation, None] = {}
    pending = [value]
    while pending:
        each = pending.pop()
        if is_argument(each) or math.prod(shape_of(each)) > _FEW or len(found) > _FEW:
            return None
        op = producer(each)
        if op.block != producer(value).block or not is_known(op):
            return None
        if op not in found:
            found[op] = None
            pending += op.operands
    return list(found)


def _copied(value: ir.Value) -> ir.Value:
    """Copy what makes a constant to the insertion point."""
    copies: dict[ir.Value, ir.Value] = {}
    made_of = _made_of(value)
    assert made_of is not None
    for op in in_order(made_of):
        copy_operation(op, copies)
    return copies[value]


def _spread(value: ir.Value) -> list[ir.Operation]:
    """Return the operations that spread what is behind them."""
    chain = list[ir.Operation]()
    while is_result_of(value, *_SPREAD):
        chain.append(producer(value))
        value = chain[-1].operands[0]
    return chain
