"""Choices between tiles by a condition of rows that hardly any row fulfils, which branches make."""

from xgpu import ir
from xgpu.dialects.attributes import RARE
from xgpu.indexing.access import shape_of
from xgpu.structure import backward_slice, defining_op, is_argument, users_of

_SELECT = "stablehlo.select"
_SPREAD = "stablehlo.broadcast_in_dim"


def is_rare_choice(op: ir.Operation) -> bool:
    """Whether an operation is such a choice."""
    return op.name == _SELECT and RARE in op.attributes and len(shape_of(condition_of(op))) == 1


def condition_of(op: ir.Operation) -> ir.Value:
    """Return the condition of rows by which a tile, or what there is of each row, is chosen."""
    made = defining_op(op.operands[0])
    return made.operands[0] if made is not None and made.name == _SPREAD else op.operands[0]


def chosen_together(op: ir.Operation) -> list[ir.Operation]:
    """Return the rare choices by the condition of one that one branch can make: none is computed from another."""
    condition = condition_of(op)
    spread = [user for user in users_of(condition) if user.name == _SPREAD]
    users = [*users_of(condition), *(user for each in spread for user in users_of(each.results[0]))]
    found = {user: None for user in users if is_rare_choice(user)}
    apart = [each for each in found if not found.keys() & set(backward_slice(each.operands, is_argument))]
    return apart if op in apart else [op]


def is_rarely_needed(op: ir.Operation) -> bool:
    """Whether nothing needs the result of an operation but what is chosen rarely."""
    users = users_of(op.results[0])
    return bool(users) and all(_is_chosen_rarely(user, op.results[0]) for user in users)


def _is_chosen_rarely(user: ir.Operation, value: ir.Value) -> bool:
    if is_rare_choice(user):
        return value == user.operands[1] and value not in (user.operands[0], user.operands[2])
    return len(user.results) == 1 and is_rarely_needed(user)
