"""Choices between tiles by a condition of rows that hardly any row fulfils: what is chosen there is a branch's alone."""

from xgpu import ir
from xgpu.dialects.attributes import RARE
from xgpu.structure import producer, users_of

_SELECT = "stablehlo.select"
_SPREAD = "stablehlo.broadcast_in_dim"


def is_rare_choice(op: ir.Operation) -> bool:
    """Whether an operation is such a choice."""
    return op.name == _SELECT and RARE in op.attributes


def condition_of(op: ir.Operation) -> ir.Value:
    """Return the condition of rows by which a tile, or what there is of each row, is chosen."""
    made = producer(op.operands[0])
    return made.operands[0] if made.name == _SPREAD else op.operands[0]


def chosen_together(op: ir.Operation) -> list[ir.Operation]:
    """Return all rare choices by the condition of one, in any order but that none is computed of another."""
    condition = condition_of(op)
    spread = [user for user in users_of(condition) if user.name == _SPREAD]
    users = [*users_of(condition), *(user for each in spread for user in users_of(each.results[0]))]
    return [user for user in dict.fromkeys(users) if is_rare_choice(user)]


def is_rarely_needed(op: ir.Operation) -> bool:
    """Whether nothing needs the result of an operation but what is chosen rarely."""
    users = users_of(op.results[0])
    return bool(users) and all(_is_chosen_rarely(user, op.results[0]) for user in users)


def _is_chosen_rarely(user: ir.Operation, value: ir.Value) -> bool:
    if is_rare_choice(user):
        return value == user.operands[1] and value not in (user.operands[0], user.operands[2])
    return len(user.results) == 1 and is_rarely_needed(user)
