"""The pass `merge-conditionals`."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.traits import is_pure
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.regions import has_equal_conditions
from xgpu.passes.support.scf_ops import create_if, create_yield
from xgpu.records import dataclass
from xgpu.structure import blocks_of, body_of, captured, defining_op, nested, replace_op, terminator_of

_IF, _YIELD = "scf.if", "scf.yield"


@dataclass(frozen=True)
class MergeConditionals(Pass):
    """Makes one conditional of those that have the same condition, if nothing but scalars is computed in and between.

    What several of them read, such as windows over ``x`` and ``x * x`` beyond whose edge is a zero, is then read once,
    by the cse that follows. A later conditional joins an earlier one if all that it needs is there by then. Needs:
    nothing. Run it after cse, when loops are unrolled.

    ```mlir
    %x = scf.if %inside -> (f32) {
      %0 = tensor.extract %t[%i] : tensor<100xf32>
      scf.yield %0 : f32
    } else {
      scf.yield %zero : f32
    }
    %y = scf.if %inside -> (f32) {
      %1 = tensor.extract %t[%i] : tensor<100xf32>
      %2 = arith.mulf %1, %1 : f32
      scf.yield %2 : f32
    } else {
      scf.yield %zero : f32
    }
    ```
    becomes
    ```mlir
    %xy:2 = scf.if %inside -> (f32, f32) {
      %0 = tensor.extract %t[%i] : tensor<100xf32>
      %1 = tensor.extract %t[%i] : tensor<100xf32>
      %2 = arith.mulf %1, %1 : f32
      scf.yield %0, %2 : f32, f32
    } else {
      scf.yield %zero, %zero : f32, f32
    }
    ```
    """

    NAME: ClassVar[str] = "merge-conditionals"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_IF,))

    def apply(self, module: ir.Module) -> None:
        """Merge the conditionals of every block of ``module``, outer ones first, which brings inner ones together."""
        if not has_equal_conditions(module):
            return
        pending = list(blocks_of(module.operation))
        while pending:
            block = pending.pop()
            for group in _groups(block):
                _merge(group)
            pending += [inner for op in block.operations for inner in blocks_of(op.operation)]


def _groups(block: ir.Block) -> list[list[ir.Operation]]:
    """Return the conditionals of a block that become one, at the place of the first of each group."""
    places: dict[ir.Operation, int] = {}
    open_: dict[ir.Value, list[ir.Operation]] = {}
    groups: list[list[ir.Operation]] = []
    for place, view in enumerate(block.operations):
        op = view.operation
        places[op] = place
        if op.name == _IF and op.results and _is_scalar(op):
            first = open_.get(op.operands[0], [op])[0]
            needed = (defining_op(value) for value in captured(op))
            if first is not op and all(places.get(made, -1) < places[first] for made in needed if made is not None):
                open_[op.operands[0]].append(op)
                # What it makes is where the first is.
                places[op] = places[first]
                continue
            open_[op.operands[0]] = [op]
            groups.append(open_[op.operands[0]])
        elif not _is_scalar(op):
            open_ = {}
    return [group for group in groups if len(group) > 1]


def _is_scalar(op: ir.Operation) -> bool:
    """Whether an operation only computes scalars, with all that is in its conditionals."""
    return all(
        each.name in (_IF, _YIELD) or (not len(each.regions) and is_pure(each.name)) for each in (op, *nested(op))
    )


def _merge(group: list[ir.Operation]) -> None:
    """Replace conditionals by one, where the first of them is."""
    first = group[0]
    types = [result.type for op in group for result in op.results]
    with ir.InsertionPoint(first), first.location:
        merged, *blocks = create_if(first.operands[0], types)
    for region, block in enumerate(blocks):
        values: list[ir.Value] = []
        for op in group:
            ends = terminator_of(body_of(op, region))
            values += ends.operands
            ends.erase()
            for inner in list(body_of(op, region).operations):
                block.append(inner)
        with ir.InsertionPoint(block), first.location:
            create_yield(values)
    made = iter(merged.results)
    for op in group:
        replace_op(op, [next(made) for _ in op.results])
