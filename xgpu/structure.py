"""The structure of IR: what defines and uses values, what is inside operations, backward slices and copies.

The bindings give the pieces, by views whose attributes are slow; everything that looks around in IR does so by the
functions of this file, and only they walk it.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cmp_to_key
from itertools import islice
from typing import Any

from xgpu import ir
from xgpu.dtypes import DType, dtype_of_element


def defining_op(value: ir.Value) -> ir.Operation | None:
    """Return the operation that ``value`` is a result of; None if it is an argument of a block."""
    if isinstance(value, ir.BlockArgument):
        return None
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def producer(value: ir.Value) -> ir.Operation:
    """Return the operation that ``value``, which is not the argument of a block, is a result of."""
    owner = value.owner
    assert not isinstance(owner, ir.Block)
    return owner.operation


def is_argument(value: ir.Value) -> bool:
    """Whether ``value`` is the argument of a block."""
    # To look at the value's class takes a tenth of the time, which leaves values of no class.
    return isinstance(value, ir.BlockArgument) or (
        not isinstance(value, ir.OpResult) and isinstance(value.owner, ir.Block)
    )


def is_result_of(value: ir.Value, *names: str) -> bool:
    """Whether ``value`` is a result of an operation of one of these names."""
    op = defining_op(value)
    return op is not None and op.name in names


def is_constant(value: ir.Value) -> bool:
    """Whether ``value`` is a constant of StableHLO."""
    return is_result_of(value, "stablehlo.constant")


def block_of(value: ir.Value) -> ir.Block:
    """Return the block that defines ``value``."""
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def owning_op(value: ir.Value) -> ir.Operation:
    """Return the operation that ``value`` is a result of, or an argument of a region of."""
    owner = value.owner
    return owner.owner.operation if isinstance(owner, ir.Block) else owner.operation


def is_used(*values: ir.Value) -> bool:
    """Whether any operation uses any of ``values``."""
    return any(next(iter(value.uses), None) is not None for value in values)


def is_shared(value: ir.Value) -> bool:
    """Whether ``value`` is used more than once; its other uses are not gone through."""
    return len(list(islice(value.uses, 2))) > 1


def users_of(value: ir.Value) -> list[ir.Operation]:
    """Return the operations that use ``value``, one for each use."""
    return [use.owner.operation for use in value.uses]


def element_of(value: ir.Value) -> ir.Type:
    """Return the type of the elements of an array."""
    type_: Any = value.type
    return type_.element_type


def dtype_of(value: ir.Value) -> DType:
    """Return the element type of an array."""
    return dtype_of_element(element_of(value))


def attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Return the attributes of ``op`` by name."""
    return {name: op.attributes[name] for name in op.attributes}


def following(op: ir.Operation) -> ir.Operation:
    """Return the operation after one in its block, whose end it is not."""
    operations = [each.operation for each in op.block.operations]
    return operations[operations.index(op) + 1]


def walk(op: ir.Operation, *names: str, post_order: bool = True) -> list[ir.Operation]:
    """Return the operations nested in ``op`` (itself included) in walk order, only those of ``names`` if any are given.

    The list is made first: operations may be erased, moved and made while it is gone through.
    """
    found: list[ir.Operation] = []
    add, advance = found.append, ir.WalkResult.ADVANCE

    def visit(nested: ir.Operation) -> ir.WalkResult:
        add(nested)
        return advance

    def visit_named(nested: ir.Operation) -> ir.WalkResult:
        if nested.name in names:
            add(nested)
        return advance

    op.walk(visit_named if names else visit, ir.WalkOrder.POST_ORDER if post_order else ir.WalkOrder.PRE_ORDER)
    return found


def walk_others(op: ir.Operation, names: Container[str]) -> list[ir.Operation]:
    """Return the operations nested in ``op`` (itself included) in walk order, but for those of ``names``."""
    found: list[ir.Operation] = []
    advance = ir.WalkResult.ADVANCE

    def visit(nested: ir.Operation) -> ir.WalkResult:
        if nested.name not in names:
            found.append(nested)
        return advance

    op.walk(visit)
    return found


def names_in(op: ir.Operation) -> set[str]:
    """Return the names of the operations nested in ``op`` (itself included)."""
    names: set[str] = set()
    advance = ir.WalkResult.ADVANCE

    def visit(nested: ir.Operation) -> ir.WalkResult:
        names.add(nested.name)
        return advance

    op.walk(visit)
    return names


def find(op: ir.Operation, matches: Callable[[ir.Operation], bool]) -> ir.Operation | None:
    """Return the first operation nested in ``op`` (itself included), inner ones first, that ``matches``."""
    found: list[ir.Operation] = []

    def visit(nested: ir.Operation) -> ir.WalkResult:
        if not matches(nested):
            return ir.WalkResult.ADVANCE
        found.append(nested)
        return ir.WalkResult.INTERRUPT

    op.walk(visit)
    return found[0] if found else None


def behind(value: ir.Value, *names: str) -> ir.Value:
    """Return the value that ``value`` is made of by operations of these names, each followed to its first operand."""
    while (op := defining_op(value)) is not None and op.name in names and len(op.operands):
        value = op.operands[0]
    return value


def count_ops(op: ir.Operation, limit: int | None = None) -> int:
    """Return how many operations are nested in ``op``; stops counting at ``limit + 1``."""
    count = -1

    def visit(_: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE if limit is None or count <= limit else ir.WalkResult.INTERRUPT

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return count


def nested(op: ir.Operation) -> Iterator[ir.Operation]:
    """Yield all operations inside ``op``, outer ones first."""
    pending = [op]
    while pending:
        for block in blocks_of(pending.pop()):
            for inner in block.operations:
                yield inner.operation
                if len(inner.operation.regions):
                    pending.append(inner.operation)


def blocks_of(op: ir.Operation) -> Iterator[ir.Block]:
    """Yield the blocks of the regions of ``op``, without those of operations inside it."""
    for region in op.regions:
        yield from region.blocks


def callees(function: ir.Operation) -> list[ir.Operation]:
    """Return the functions that a function of a module calls, in the order of the calls."""
    calls = walk(function, "func.call")
    if not calls:
        return []
    assert function.parent is not None
    named = ir.SymbolTable(function.parent.operation)
    return [named[ir.FlatSymbolRefAttr(call.attributes["callee"]).value].operation for call in calls]


def arguments_of(op: ir.Operation) -> list[ir.BlockArgument]:
    """Return the arguments of the blocks of `blocks_of`."""
    return [argument for block in blocks_of(op) for argument in block.arguments]


def body_of(op: ir.Operation, region: int = 0) -> ir.Block:
    """Return the only block of a region of ``op``."""
    block: ir.Block = op.regions[region].blocks[0]
    return block


def captured(op: ir.Operation) -> list[ir.Value]:
    """Return the values defined outside ``op`` that operations inside it use."""
    if not len(op.regions):
        return []
    inside = list(nested(op))
    own: set[ir.Value] = {value for each in inside for value in each.results}
    own |= {argument for each in (op, *inside) for argument in arguments_of(each)}
    return list(dict.fromkeys(operand for each in inside for operand in each.operands if operand not in own))


def terminator_of(block: ir.Block) -> ir.Operation:
    """Return the last operation of a block, without going through the others."""
    last = ir.InsertionPoint.at_block_terminator(block).ref_operation
    assert last is not None
    return last


def backward_slice(values: Iterable[ir.Value], stops: Callable[[ir.Value], bool]) -> Iterator[ir.Operation]:
    """Yield the operations that ``values`` depend on, each once, up to arguments of blocks and where it ``stops``.

    Without what the regions of these operations use from outside, but for their operands.
    """
    pending = list(values)
    seen: set[ir.Operation] = set()
    while pending:
        value = pending.pop()
        op = defining_op(value)
        if op is None or op in seen or stops(value):
            continue
        seen.add(op)
        yield op
        pending += op.operands


def as_needed(values: Iterable[ir.Value], stops: Callable[[ir.Value], bool]) -> list[ir.Operation]:
    """Return the operations that ``values`` are computed by, each right before the first that needs it.

    Wherever they are in the program, up to arguments of blocks and where it ``stops``, and with what regions of them
    use from outside. Equal layers, of which the first makes the constants of all, have equal operations then.
    """
    found: dict[ir.Operation, None] = {}
    met = set[ir.Operation]()
    pending: list[ir.Value | ir.Operation] = [*reversed(list(values))]
    while pending:
        each = pending.pop()
        if isinstance(each, ir.Operation):
            found[each] = None
        elif not stops(each) and (op := defining_op(each)) is not None and op not in met:
            met.add(op)
            pending.append(op)
            pending += reversed((*op.operands, *captured(op)))
    return list(found)


def in_order(operations: Iterable[ir.Operation]) -> list[ir.Operation]:
    """Return operations of one block in the order in which they stand."""

    def compare(left: ir.Operation, right: ir.Operation) -> int:
        return -1 if left.is_before_in_block(right) else 1

    return sorted(operations, key=cmp_to_key(compare))


def longest_chains(operations: Iterable[ir.Operation], counts: Callable[[ir.Operation], bool]) -> dict[ir.Value, int]:
    """Return, for each result of ``operations``, in their order, how many that ``counts`` lie in a chain up to it.

    Results, not operations: an operation has another hash when it has other operands.
    """
    found: dict[ir.Value, int] = {}
    for op in operations:
        before = max((found.get(value, 0) for value in (*op.operands, *captured(op))), default=0)
        found.update(dict.fromkeys(op.results, before + counts(op)))
    return found


def made[KeyT, ValueT](
    goal: KeyT,
    known: dict[KeyT, ValueT],
    needs: Callable[[KeyT], Sequence[KeyT]],
    make: Callable[[KeyT, list[ValueT]], ValueT],
) -> ValueT:
    """Return ``known[goal]``; what is not known is made first, each once, after all that it needs in that order.

    Chains of operations are longer than Python recurses.
    """
    pending: list[tuple[KeyT, Sequence[KeyT] | None]] = [(goal, None)]
    while pending:
        key, parts = pending.pop()
        if key in known:
            continue
        if parts is None:
            parts = needs(key)
            pending.append((key, parts))
            pending += [(each, None) for each in reversed(parts) if each not in known]
        else:
            known[key] = make(key, [known[each] for each in parts])
    return known[goal]


def copy_operation(op: ir.Operation, copies: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Copy ``op`` to the current insertion point, on the copies of its operands, and record its results' copies."""
    copy = op.clone().operation
    for number, operand in enumerate(op.operands):
        copy.operands[number] = copies[operand]
    for inner in nested(copy):
        for number, operand in enumerate(inner.operands):
            if operand in copies:
                inner.operands[number] = copies[operand]
    copies.update(zip(op.results, copy.results, strict=True))
    return copy


def copy_module(module: ir.Module) -> ir.Module:
    """Return a copy of ``module``, with its attributes."""
    with module.context:
        copy = ir.Module.create(module.operation.location)
        for name, value in module.operation.attributes.items():
            copy.operation.attributes[name] = value
        for op in module.body.operations:
            copy.body.append(op.operation.clone())
    return copy


def replace_op(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Replace the results of ``op`` by ``values`` and erase it."""
    for result, value in zip(list(op.results), values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def moved_before(op: ir.Operation, block: ir.Block) -> list[ir.Value]:
    """Move the operations of ``block``, but for its terminator, before ``op``; return what the terminator returns."""
    *operations, terminator = (view.operation for view in block.operations)
    for each in operations:
        each.move_before(op)
    return list(terminator.operands)
