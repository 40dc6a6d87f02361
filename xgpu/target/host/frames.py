"""Chooses which values a coroutine keeps in its frame while it waits.

LLVM keeps loads, calls and phis there. Arithmetic is recomputed where it is used behind a suspension, with all
that it depends on: a chain of n shuffles and additions becomes n * n additions. Here the results of long
computations are stored and loaded again at once, where LLVM cannot see through, so that they are loads.
"""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.target.host.context import OPAQUE, SCRATCH_BYTES, byte_address, size_of

_MOST_OPERATIONS = 8
"""Operations that LLVM may recompute instead of keeping a value; more take longer than loading it."""

_REPEATED = frozenset(
    f"llvm.{name}"
    for name in """add sub mul udiv sdiv urem srem and or xor shl lshr ashr fadd fsub fmul fdiv frem icmp fcmp select
    getelementptr bitcast zext sext trunc fpext fptrunc fptosi fptoui sitofp uitofp ptrtoint inttoptr""".split()
)
"""Operations that LLVM recomputes rather than keeps."""


def keep_values(body: ir.Block, resumptions: Mapping[ir.Block, ir.Block], context: ir.Value) -> None:
    """Replace uses behind a suspension of values that are expensive to compute by loads.

    ``body`` is the block that a thread starts in, ``resumptions`` tells of each block that ends in a suspension where
    the thread goes on. Memory to store to is in ``context``.
    """
    costs: dict[ir.Value, int] = {}
    for block in _in_order(body, resumptions):
        behind: set[ir.Block] | None = None
        for op in [op.operation for op in block.operations]:
            if op.name not in _REPEATED:
                continue
            result = op.results[0]
            costs[result] = 1 + sum(costs.get(operand, 0) for operand in op.operands)
            if costs[result] <= _MOST_OPERATIONS:
                continue
            users = {use.owner.operation for use in result.uses}
            if all(user.block == block for user in users):
                continue
            behind = _behind_suspensions(block, resumptions) if behind is None else behind
            if any(user.block in behind for user in users) and size_of(result.type) <= SCRATCH_BYTES:
                costs[_through_memory(op, users, context)] = 0


def _successors(block: ir.Block, resumptions: Mapping[ir.Block, ir.Block]) -> Iterator[ir.Block]:
    """Yield the blocks after one within the same run through the kernel."""
    if block in resumptions:
        yield resumptions[block]
    else:
        yield from block.successors


def _in_order(body: ir.Block, resumptions: Mapping[ir.Block, ir.Block]) -> list[ir.Block]:
    """Return the blocks such that each comes after those that dominate it."""
    order: list[ir.Block] = []
    seen = {body}
    stack = [(body, _successors(body, resumptions))]
    while stack:
        block, successors = stack[-1]
        following = next((each for each in successors if each not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, _successors(following, resumptions)))
    return order[::-1]


def _behind_suspensions(block: ir.Block, resumptions: Mapping[ir.Block, ir.Block]) -> set[ir.Block]:
    """Return the blocks that a thread may be in after a suspension since it was in ``block``."""
    behind: set[ir.Block] = set()
    before: set[ir.Block] = {block}
    pending = [(block, False)]
    while pending:
        current, has_waited = pending.pop()
        waits = has_waited or current in resumptions
        for successor in _successors(current, resumptions):
            seen = behind if waits else before
            if successor != block and successor not in seen:
                seen.add(successor)
                pending.append((successor, waits))
    return behind


def _through_memory(op: ir.Operation, users: set[ir.Operation], context: ir.Value) -> ir.Value:
    """Store the result of ``op`` and load it for its users, in a way that the optimiser must not touch."""
    (result,) = op.results
    volatile: dict[str, ir.Attribute] = {"volatile_": ir.UnitAttr.get()}
    with ir.InsertionPoint.after(op), op.location:
        address = byte_address(context, OPAQUE)
        ir.Operation.create("llvm.store", operands=[result, address], attributes=volatile)
        loaded = ir.Operation.create("llvm.load", [result.type], [address], volatile).results[0]
    for user in users:
        user.replace_uses_of_with(result, loaded)
    return loaded
