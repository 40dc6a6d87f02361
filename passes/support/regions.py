"""Moving the contents of regions: what inlining, unrolling and the loop passes share.

The C++ side does the work: an operation is cloned whole, and the operations of its body are then moved out of it.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.attributes import UNROLL
from xgpu.dialects.traits import traits_of
from xgpu.structure import find, replace_op, walk


def waits_for_threads(op: ir.Operation) -> bool:
    """Tell whether other threads must execute an operation in ``op`` with this one.

    Copies of such an operation in two branches, of which threads take different ones, would not be one operation.
    """
    return find(op, lambda nested: traits_of(nested.name).collective) is not None


def unroll_of(loop: ir.Operation) -> str | None:
    """Return the value of the ``xgpu.unroll`` attribute of ``loop``, None if it has none."""
    return ir.StringAttr(loop.attributes[UNROLL]).value if UNROLL in loop.attributes else None


def move_body(block: ir.Block, values: Sequence[ir.Value], anchor: ir.Operation) -> list[ir.Value]:
    """Move the operations of ``block`` before ``anchor``, its arguments replaced by ``values``.

    Returns the operands of the terminator, which stays behind alone.
    """
    for argument, value in zip(list(block.arguments), values, strict=True):
        argument.replace_all_uses_with(value)
    operations = [op.operation for op in block.operations]
    terminator = operations.pop()
    for op in operations:
        op.move_before(anchor)
    return list(terminator.operands)


def resolve_conditional(conditional: ir.Operation, outcome: bool) -> None:
    """Replace an `scf.if` by its branch for ``outcome``."""
    blocks = conditional.regions[0 if outcome else 1].blocks
    values = move_body(blocks[0], [], conditional) if len(blocks) else []
    replace_op(conditional, values)


def has_equal_conditions(module: ir.Module) -> bool:
    """Whether several conditionals of ``module`` have one condition, wherever they are."""
    conditions = [op.operands[0] for op in walk(module.operation, "scf.if")]
    return len(set(conditions)) < len(conditions)
