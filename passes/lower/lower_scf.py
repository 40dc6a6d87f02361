"""The pass lower-scf."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.regions import unroll_of
from xgpu.records import dataclass

LOOP_ANNOTATION = "loop_annotation"
_ANNOTATIONS = {
    "full": "#llvm.loop_annotation<unroll = <full = true>>",
    "none": "#llvm.loop_annotation<unroll = <disable = true>>",
}


@dataclass(frozen=True)
class LowerScf(Pass):
    """Replaces scf.for, scf.if and scf.while by blocks and branches.

    Needs lower-tensors to have run, as carried values become block arguments. A loop with constant bounds and at
    least one iteration tests at its end, any other at its beginning. ``xgpu.unroll`` of a loop becomes the
    ``loop_annotation`` of the branch back to its beginning.

    ```mlir
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %x) -> (f32) {
      %b = arith.addf %a, %a : f32
      scf.yield %b : f32
    }
    // becomes
      cf.br ^body(%c0, %x : index, f32)
    ^body(%i: index, %a: f32):
      %b = arith.addf %a, %a : f32
      %next = arith.addi %i, %c1 : index
      %more = arith.cmpi ne, %next, %c8 : index
      cf.cond_br %more, ^body(%next, %b : index, f32), ^after
    ^after:  // %s is %b
    ```
    """

    NAME: ClassVar[str] = "lower-scf"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("scf.*",))

    def apply(self, module: ir.Module) -> None:
        for function in functions(module):
            pending = list(function.operation.regions[0].blocks)
            while pending:
                for op, after in _split(pending.pop()):
                    with op.location:
                        pending += _LOWERINGS[op.name](op, after)


def _split(block: ir.Block) -> list[tuple[ir.Operation, ir.Block]]:
    """Split ``block`` after each scf operation that it holds; return these with the block of what follows them.

    Outer operations are split before the regions in them, so every operation moves once for each of the two.
    """
    found: list[tuple[ir.Operation, ir.Block]] = []
    last = block
    for op in [op.operation for op in block.operations]:
        if last is not block:
            last.append(op)
        if op.name in _LOWERINGS:
            last = last.create_after()
            found.append((op, last))
        elif op.name.startswith("scf."):
            refuse(LowerScf.NAME, op, f"expected {', '.join(_LOWERINGS)}")
    return found


def _take(block: ir.Block, into: ir.Block) -> ir.Operation:
    """Move all operations of ``block`` but its terminator, which is returned, to the end of ``into``."""
    *operations, terminator = [op.operation for op in block.operations]
    for op in operations:
        into.append(op)
    return terminator


def _branch(block: ir.Block, target: ir.Block, values: list[ir.Value], annotation: ir.Attribute | None = None) -> None:
    with ir.InsertionPoint(block):
        branch = ir.cf.br(values, target)
    if annotation is not None:
        branch.attributes[LOOP_ANNOTATION] = annotation


def _conditional_branch(
    block: ir.Block,
    condition: ir.Value,
    on_true: tuple[ir.Block, list[ir.Value]],
    on_false: tuple[ir.Block, list[ir.Value]],
    annotation: ir.Attribute | None = None,
) -> None:
    with ir.InsertionPoint(block):
        branch = ir.cf.cond_br(condition, on_true[1], on_false[1], on_true[0], on_false[0])
    if annotation is not None:
        branch.attributes[LOOP_ANNOTATION] = annotation


def _annotation(op: ir.Operation) -> ir.Attribute | None:
    word = unroll_of(op)
    return None if word is None else ir.Attribute.parse(_ANNOTATIONS[word])


def _replace(old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
    for old_value, new_value in zip(old, new, strict=True):
        old_value.replace_all_uses_with(new_value)


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.operation.attributes["value"]).value


def _lower_for(op: ir.Operation, after: ir.Block) -> list[ir.Block]:
    """Lower one loop; return its new blocks that may hold operations still to lower."""
    lower, upper, step, *inits = op.operands
    bounds = [_constant(value) for value in (lower, upper, step)]
    source = op.regions[0].blocks[0]
    before = op.block
    types = [argument.type for argument in source.arguments]
    body = before.create_after(*types)
    is_unsigned = "unsignedCmp" in op.attributes
    if not is_unsigned and None not in bounds and bounds[0] < bounds[1] and bounds[2] > 0:  # type: ignore[operator]
        _branch(before, body, [lower, *inits])
        terminator = _take(source, body)
        _replace(list(source.arguments), list(body.arguments))
        carried = list(terminator.operands)
        with ir.InsertionPoint(body):
            following = ir.arith.addi(body.arguments[0], step)
            # Unequal, not less: the value after the last iteration may be past the largest one of the type.
            end = _end_of_range(lower.type, *bounds)  # type: ignore[arg-type]
            more = ir.arith.cmpi(ir.arith.CmpIPredicate.ne, following, end)
        _conditional_branch(body, more, (body, [following, *carried]), (after, []), _annotation(op))
        _replace(list(op.results), carried)
    else:
        header = before.create_after(*types)
        _branch(before, header, [lower, *inits])
        with ir.InsertionPoint(header):
            predicate = ir.arith.CmpIPredicate.ult if is_unsigned else ir.arith.CmpIPredicate.slt
            more = ir.arith.cmpi(predicate, header.arguments[0], upper)
        while len(body.arguments):
            body.erase_argument(0)
        _conditional_branch(header, more, (body, []), (after, []))
        terminator = _take(source, body)
        _replace(list(source.arguments), list(header.arguments))
        with ir.InsertionPoint(body):
            following = ir.arith.addi(header.arguments[0], step)
        _branch(body, header, [following, *terminator.operands], _annotation(op))
        _replace(list(op.results), list(header.arguments)[1:])
    terminator.erase()
    op.erase()
    return [body]


def _end_of_range(type_: ir.Type, lower: int, upper: int, step: int) -> ir.Value:
    trips = -(-(upper - lower) // step)
    end = ir.IntegerAttr.get(type_, lower + trips * step)
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": end}).results[0]


def _lower_if(op: ir.Operation, after: ir.Block) -> list[ir.Block]:
    """Lower one conditional; a branch that does nothing but yield gets no block."""
    before = op.block
    condition = op.operands[0]
    for result in op.results:
        argument = after.add_argument(result.type, op.location)
        result.replace_all_uses_with(argument)
    targets: list[tuple[ir.Block, list[ir.Value]]] = []
    made: list[ir.Block] = []
    last = before
    for region in op.regions:
        source = region.blocks[0] if len(region.blocks) else None
        if source is None or len(source.operations) == 1:
            targets.append((after, list(source.operations[0].operands) if source else []))
            continue
        block = last.create_after()
        terminator = _take(source, block)
        _branch(block, after, list(terminator.operands))
        terminator.erase()
        targets.append((block, []))
        made.append(block)
        last = block
    _conditional_branch(before, condition, targets[0], targets[1])
    op.erase()
    return made


def _lower_while(op: ir.Operation, after: ir.Block) -> list[ir.Block]:
    """Lower one general loop; its condition's operands are also its results."""
    test_source, body_source = (region.blocks[0] for region in op.regions)
    before = op.block
    test = before.create_after(*[argument.type for argument in test_source.arguments])
    body = test.create_after()
    _branch(before, test, list(op.operands))
    condition = _take(test_source, test)
    _replace(list(test_source.arguments), list(test.arguments))
    more, *passed = condition.operands
    _conditional_branch(test, more, (body, []), (after, []))
    end = _take(body_source, body)
    _replace(list(body_source.arguments), passed)
    _branch(body, test, list(end.operands), _annotation(op))
    _replace(list(op.results), passed)
    condition.erase()
    end.erase()
    op.erase()
    return [test, body]


_LOWERINGS: dict[str, Callable[[ir.Operation, ir.Block], list[ir.Block]]] = {
    "scf.for": _lower_for,
    "scf.if": _lower_if,
    "scf.while": _lower_while,
}
