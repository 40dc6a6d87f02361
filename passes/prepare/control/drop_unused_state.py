"""The pass `drop-unused-state`."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.control_flow import planned_blocks
from xgpu.dialects.attributes import HOST, RECURRENCE
from xgpu.hlo.stablehlo_builder import hlo
from xgpu.passes.framework.base import OperationRewrite, main_of
from xgpu.records import dataclass
from xgpu.structure import (
    as_needed,
    attributes_of,
    block_of,
    body_of,
    captured,
    copy_operation,
    is_argument,
    is_used,
    terminator_of,
)


@dataclass(frozen=True)
class DropUnusedState(OperationRewrite):
    """Drops values of a loop's state that neither its condition, nor its results, nor other values follow from.

    Such are the counters of a program whose loops a host counts. Operations that only they need go with them. Only for
    ``runs=launches``, and loops that the host runs. Needs: loops to be counted.

    ```mlir
    %r:3 = stablehlo.while(%i = %zero, %x = %start, %n = %none) ... do { %j = stablehlo.add %i, %one ... }
    ```
    becomes, where nothing else uses ``%i`` and ``%r#0``,
    ```mlir
    %r:2 = stablehlo.while(%x = %start, %n = %none) ... do { ... }
    ```
    """

    NAME: ClassVar[str] = "drop-unused-state"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.while",))

    runs: Literal["xla", "launches"] = "launches"
    """The executor of loops."""

    def apply(self, module: ir.Module) -> None:
        """Rewrite every block of the function ``main``, inner ones first: what they drop, outer loops may drop too."""
        for block in reversed(list(planned_blocks(main_of(module).entry_block))):
            self.rewrite_block(block)

    def rewrite(self, op: ir.Operation) -> None:
        """Drop what a loop does not need."""
        if self.runs != "launches" or HOST not in op.attributes or RECURRENCE in op.attributes:
            return
        kept = _needed_state(op)
        if len(kept) < len(op.operands):
            new = _with_state(op, kept)
            for number, result in zip(kept, new.results, strict=True):
                op.results[number].replace_all_uses_with(result)
            op.erase()


def _needed_state(loop: ir.Operation) -> list[int]:
    """Return the numbers of the values that are used after the loop, or that such, or the condition, follow from."""
    condition, body = (body_of(loop, number) for number in (0, 1))
    ends = terminator_of(body).operands
    found = {number for number, result in enumerate(loop.results) if is_used(result)}
    found |= _arguments_behind(terminator_of(condition).operands, condition)
    pending = list(found)
    while pending:
        more = _arguments_behind([ends[pending.pop()]], body) - found
        found |= more
        pending += more
    return sorted(found)


def _arguments_behind(values: Iterable[ir.Value], block: ir.Block) -> set[int]:
    """Return the numbers of the arguments of ``block`` that ``values`` are computed from."""
    found = {value for each in _behind(values, block) for value in (*each.operands, *captured(each))}
    found |= set(values)
    return {ir.BlockArgument(value).arg_number for value in found if is_argument(value) and value.owner == block}


def _behind(values: Iterable[ir.Value], block: ir.Block) -> list[ir.Operation]:
    """Return the operations of ``block`` that ``values`` are computed from."""
    return as_needed(values, lambda value: block_of(value) != block)


def _with_state(loop: ir.Operation, kept: list[int]) -> ir.Operation:
    """Make the loop at the current insertion point with these values of its state alone."""
    starts = [loop.operands[number] for number in kept]
    types = [start.type for start in starts]
    new = ir.Operation.create(loop.name, types, starts, attributes_of(loop), regions=2)
    for number, region in enumerate(new.regions):
        old, block = body_of(loop, number), region.blocks.append(*types)
        results = list(terminator_of(old).operands)
        if number == 1:
            results = [results[each] for each in kept]
        needed = set(_behind(results, old))
        copies: dict[ir.Value, ir.Value] = {
            old.arguments[each]: argument for each, argument in zip(kept, block.arguments, strict=True)
        }
        with ir.InsertionPoint(block):
            for op in (view.operation for view in old.operations):
                if op in needed:
                    # What is from around the loop is its own copy.
                    copies |= {value: value for value in op.operands if value not in copies}
                    copy_operation(op, copies)
            hlo.return_([copies.get(value, value) for value in results])
    return new
