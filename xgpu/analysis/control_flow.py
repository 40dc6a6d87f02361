"""Control flow: the operations that run blocks, and the blocks that are planned."""

from collections.abc import Iterator

from xgpu import ir

CONTROL_FLOW = {"stablehlo.while": (1,), "stablehlo.case": None, "stablehlo.if": None}
"""Operations that run the blocks of their regions, and which regions hold work for kernels; None is all of them.

The condition of a loop is left as it is: XLA finds the number of iterations from it.
"""


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
