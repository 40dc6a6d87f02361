"""Constants that blocks of control flow take from around them: each block makes its own.

A loop that adds one to an array of a million numbers would otherwise read a million ones from memory in each step, and
XLA would fill that array again in each. What a loop is given as a part of its state, and hands on unchanged, is such a
constant too.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.device import Device
from xgpu.fusion.regions import CONTROL_FLOW, maker, planned_blocks
from xgpu.options import Options

_SPREAD = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")
_MADE_ANYWHERE = ("stablehlo.constant", "stablehlo.iota")


def make_constants_inside(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Copy constants, and arrays of one constant, into the blocks that use them."""
    for block in planned_blocks(main.entry_block):
        for op in [view.operation for view in block.operations if view.operation.name in CONTROL_FLOW]:
            if op.name == "stablehlo.while":
                _replace_unchanged_state(op)
            for region in op.regions:
                for inner in region.blocks:
                    _copy_into(inner)


def _replace_unchanged_state(loop: ir.Operation) -> None:
    """Have the blocks of a loop use the initial value of a state that is a constant and never changes."""
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
    """Have these operands of operations in ``block`` be a copy of ``initial``."""
    if uses:
        with ir.InsertionPoint.at_block_begin(block):
            copy = _copied(initial)
        for use in uses:
            use.owner.operation.operands[use.operand_number] = copy


def _copy_into(block: ir.Block) -> None:
    copies: dict[ir.Value, ir.Value] = {}
    for op in [view.operation for view in block.operations]:
        for number, operand in enumerate(op.operands):
            if not isinstance(operand.owner, ir.Block) and maker(operand).block != block and _is_constant(operand):
                if operand not in copies:
                    with ir.InsertionPoint.at_block_begin(block):
                        copies[operand] = _copied(operand)
                op.operands[number] = copies[operand]


def _is_constant(value: ir.Value) -> bool:
    """Whether ``value`` is made of constants without reading memory."""
    while not isinstance(value.owner, ir.Block) and maker(value).name in _SPREAD:
        value = maker(value).operands[0]
    return not isinstance(value.owner, ir.Block) and maker(value).name in _MADE_ANYWHERE


def _copied(value: ir.Value) -> ir.Value:
    """Copy what makes a constant to the insertion point."""
    chain = [maker(value)]
    while chain[-1].name in _SPREAD:
        chain.append(maker(chain[-1].operands[0]))
    made: ir.Value | None = None
    for op in reversed(chain):
        copy = op.clone()
        if made is not None:
            copy.operands[0] = made
        made = copy.results[0]
    assert made is not None
    return made
