"""The pass `share-conditionals`."""

from dataclasses import field
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.traits import is_pure, traits_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.arith_builder import constant
from xgpu.passes.support.regions import has_equal_conditions
from xgpu.passes.support.scf_ops import create_if, create_yield
from xgpu.records import dataclass
from xgpu.structure import (
    attributes_of,
    blocks_of,
    body_of,
    is_result_of,
    is_used,
    producer,
    replace_op,
    terminator_of,
    users_of,
)

_IF = "scf.if"
type _Key = tuple[object, ...]


@dataclass(frozen=True)
class ShareConditionals(Pass):
    """Computes once what a conditional and a later one of the same condition both compute: the first returns it.

    A thread that walks a row several times, for its maximum, the sum of exponentials and the quotients, has the last
    elements of the row in conditionals, as not every thread has some. What it makes of the others is computed once, as
    `cse` merges it; this does the same for those. Values that were not computed are zero. Needs: arrays as
    tensors. Run it after merge-conditionals, and cse after it.

    ```mlir
    %x = scf.if %inside -> (f32) {
      %0 = math.exp %a : f32
      scf.yield %0 : f32
    } else { ...
    %sum = "xgpu.shuffle_reduce"(%x) ...
    %y = scf.if %inside -> (f32) {
      %1 = math.exp %a : f32
      %2 = arith.divf %1, %sum : f32
      scf.yield %2 : f32
    } else { ...
    ```
    becomes
    ```mlir
    %x:2 = scf.if %inside -> (f32, f32) {
      %0 = math.exp %a : f32
      scf.yield %0, %0 : f32, f32
    } else { ...
    %sum = "xgpu.shuffle_reduce"(%x#0) ...
    %y = scf.if %inside -> (f32) {
      %2 = arith.divf %x#1, %sum : f32
      scf.yield %2 : f32
    } else { ...
    ```
    """

    NAME: ClassVar[str] = "share-conditionals"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_IF,))

    def apply(self, module: ir.Module) -> None:
        """Share what the conditionals of every block of ``module`` compute alike."""
        if not has_equal_conditions(module):
            return
        pending = list(blocks_of(module.operation))
        while pending:
            block = pending.pop()
            conditions: dict[ir.Value, list[_Conditional]] = {}
            for view in block.operations:
                if view.operation.name == _IF:
                    conditions.setdefault(view.operation.operands[0], []).append(_Conditional(view.operation))
            for group in conditions.values():
                if len(group) > 1:
                    _share(group)
            pending += [inner for view in block.operations for inner in blocks_of(view.operation)]


@dataclass(eq=False)
class _Conditional:
    """A conditional, and the values of its regions that it is to return besides its results."""

    op: ir.Operation
    returned: tuple[dict[ir.Value, None], dict[ir.Value, None]] = field(default_factory=lambda: ({}, {}))


@dataclass
class _Computed:
    """The values that a region of earlier conditionals computes: each by its key, and the conditional that has it."""

    values: dict[_Key, ir.Value] = field(default_factory=dict)
    places: dict[ir.Value, _Conditional] = field(default_factory=dict)


def _share(group: list[_Conditional]) -> None:
    """Have conditionals of one condition, in the order of the block, take what those before compute."""
    shared: list[tuple[ir.Value, _Conditional, int, ir.Value]] = []
    computed = _Computed(), _Computed()
    again: list[ir.Value] = []
    for conditional in group:
        for number, region in enumerate(conditional.op.regions):
            if not len(region.blocks):
                continue
            equal = _equal(conditional, region.blocks[0], computed[number])
            again += equal
            for value, known in equal.items():
                place = computed[number].places[known]
                if place is conditional:
                    value.replace_all_uses_with(known)
                elif _is_needed(value, equal):
                    place.returned[number][known] = None
                    shared.append((value, place, number, known))
    results = {place: _rebuilt(place) for place in dict.fromkeys(place for _, place, _, _ in shared)}
    for value, place, number, known in shared:
        value.replace_all_uses_with(results[place][number, known])
    for value in reversed(again):
        if not is_used(value):
            producer(value).erase()


def _equal(conditional: _Conditional, block: ir.Block, computed: _Computed) -> dict[ir.Value, ir.Value]:
    """Return the values of a region that were computed before, each with its equal; note the others as computed."""
    equal: dict[ir.Value, ir.Value] = {}
    for view in block.operations:
        op = view.operation
        if not _can_be_shared(op):
            continue
        value: ir.Value = op.results[0]
        attributes = tuple(sorted((name, str(attribute)) for name, attribute in attributes_of(op).items()))
        key = (op.name, attributes, value.type, *(equal.get(operand, operand) for operand in op.operands))
        if key in computed.values:
            equal[value] = computed.values[key]
        else:
            computed.values[key] = value
            computed.places[value] = conditional
    return equal


def _is_needed(value: ir.Value, equal: dict[ir.Value, ir.Value]) -> bool:
    """Whether a value of ``equal`` is used by what is not. A constant or index is as soon made again."""
    if is_result_of(value, "arith.constant") or value.type == ir.IndexType.get():
        return False
    return any(len(user.results) != 1 or user.results[0] not in equal for user in users_of(value))


def _can_be_shared(op: ir.Operation) -> bool:
    """Whether an operation only computes, or reads, one scalar or vector."""
    if len(op.results) != 1 or len(op.regions):
        return False
    is_of_vectors = op.name.startswith("vector.") and not traits_of(op.name).has_effects
    type_ = op.results[0].type
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return (is_pure(op.name) or is_of_vectors) and isinstance(element, ir.FloatType | ir.IntegerType | ir.IndexType)


def _rebuilt(conditional: _Conditional) -> dict[tuple[int, ir.Value], ir.Value]:
    """Have a conditional return more; returns each of the values by its region and what it is there."""
    op, returned = conditional.op, conditional.returned
    values = [*((0, value) for value in returned[0]), *((1, value) for value in returned[1])]
    types = [*(result.type for result in op.results), *(value.type for _, value in values)]
    with ir.InsertionPoint(op), op.location:
        zeros = [constant(0, value.type) for _, value in values]
        made, *blocks = create_if(op.operands[0], types)
    for number, block in enumerate(blocks):
        ends: list[ir.Value] = []
        if len(op.regions[number].blocks):
            terminator = terminator_of(body_of(op, number))
            ends += terminator.operands
            terminator.erase()
            for view in list(body_of(op, number).operations):
                block.append(view)
        ends += [value if region == number else zero for (region, value), zero in zip(values, zeros, strict=True)]
        with ir.InsertionPoint(block), op.location:
            create_yield(ends)
    count = len(op.results)
    replace_op(op, list(made.results)[:count])
    conditional.op = made
    return dict(zip(values, list(made.results)[count:], strict=True))
