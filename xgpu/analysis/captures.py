"""The regions of an operation and what they take from outside it."""

from collections.abc import Iterator

from xgpu import ir

REDUCE = "stablehlo.reduce"
CONTROL_FLOW = {"stablehlo.while": (1,), "stablehlo.case": None, "stablehlo.if": None}
"""Operations that run the blocks of their regions, and which regions hold work for kernels; None is all of them.

The condition of a loop is left as it is: XLA finds the number of iterations from it.
"""


def maker(value: ir.Value) -> ir.Operation:
    """Return the defining op of ``value``, which is not the argument of a block."""
    owner = value.owner
    assert not isinstance(owner, ir.Block)
    return owner.operation


def is_constant(value: ir.Value) -> bool:
    """Whether ``value`` is a constant."""
    return not isinstance(value.owner, ir.Block) and maker(value).name == "stablehlo.constant"


def nested(op: ir.Operation) -> Iterator[ir.Operation]:
    """Yield all operations inside ``op``, outer ones first."""
    pending = [op]
    while pending:
        for region in pending.pop().regions:
            for block in region.blocks:
                for inner in block.operations:
                    yield inner.operation
                    if len(inner.operation.regions):
                        pending.append(inner.operation)


def planned_blocks(block: ir.Block, with_conditions: bool = False) -> Iterator[ir.Block]:
    """Yield ``block`` and the blocks of control flow in it whose operations kernels compute, outer ones first.

    ``with_conditions`` adds those that XLA runs: the conditions of loops. A block may be rewritten when it was yielded.
    """
    pending = [block]
    while pending:
        current = pending.pop()
        yield current
        for op in current.operations:
            if op.operation.name not in CONTROL_FLOW:
                continue
            planned = CONTROL_FLOW[op.operation.name]
            for number, region in enumerate(op.operation.regions):
                if with_conditions or planned is None or number in planned:
                    pending += region.blocks


def captured(op: ir.Operation) -> list[ir.Value]:
    """Return the values defined outside ``op`` that operations inside it use."""
    if not len(op.regions):
        return []
    inside = list(nested(op))
    own: set[ir.Value] = {value for each in inside for value in each.results}
    own |= {
        argument for each in (op, *inside) for region in each.regions for b in region.blocks for argument in b.arguments
    }
    return list(dict.fromkeys(operand for each in inside for operand in each.operands if operand not in own))


def copy_operation(op: ir.Operation, copies: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Copy ``op`` to the current insertion point, on the copies of its operands, and record its results' copies."""
    copy = op.clone()
    for number, operand in enumerate(op.operands):
        copy.operands[number] = copies[operand]
    for inner in nested(copy):
        for number, operand in enumerate(inner.operands):
            if operand in copies:
                inner.operands[number] = copies[operand]
    copies.update(zip(op.results, copy.results, strict=True))
    return copy
