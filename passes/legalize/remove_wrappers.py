"""The pass `remove-wrappers`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.shards import FULL_TO_SHARD, SHARD_TO_FULL
from xgpu.hlo.source_location import unsupported
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.records import dataclass
from xgpu.structure import is_used, replace_op, walk

_PLACEMENT_CALLS = frozenset(
    ("Sharding", FULL_TO_SHARD, SHARD_TO_FULL, "LayoutConstraint", "annotate_device_placement")
)
"""Custom calls that only mark how an array is placed; on one device they are the identity."""
_ALIASES = "output_operand_aliases"
_TUPLE_INDICES = re.compile(r"output_tuple_indices = \[([^\]]*)\]")
_TUPLE = "stablehlo.tuple"


@dataclass(frozen=True)
class RemoveWrappers(ModuleRewrite):
    """Removes operations that are the identity on one device, and takes tuples apart.

    A custom call that returns a tuple returns its elements one by one. Barriers stay, but for those between scalars in
    the region of a reduction. Raises Unsupported for a tuple that is not made where it is taken apart. Needs: MHLO and
    composites gone.

    ```mlir
    %t = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<i32>>
    %0 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
    %1 = stablehlo.custom_call @Sharding(%0) : (tensor<4xf32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %0:2 = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>)
    // %0#0 in place of %1
    ```
    """

    NAME: ClassVar[str] = "remove-wrappers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        (_TUPLE, *(f"stablehlo.{name}" for name in ("custom_call", "get_tuple_element", "optimization_barrier")))
    )

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations, and erase the tuples that nothing uses any more."""
        super().apply(module)
        for op in reversed(walk(module.operation, _TUPLE)):
            if not is_used(op.results[0]):
                op.operation.erase()

    def rewrite(self, op: ir.Operation) -> None:
        """Remove one operation, or take its tuple apart."""
        if op.name in _WRAPPERS:
            _WRAPPERS[op.name](op)


def _forward(op: ir.Operation) -> None:
    replace_op(op, list(op.operands))


def _rewrite_custom_call(op: ir.Operation) -> None:
    """Forward what only says where an array is; have results that are a tuple returned one by one."""
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target in _PLACEMENT_CALLS and len(op.operands) == len(op.results) == 1:
        # What has another type is a part of an array, of which every device has one: that is left to XLA.
        if op.operands[0].type == op.results[0].type:
            _forward(op)
    elif len(op.results) == 1 and isinstance(op.results[0].type, ir.TupleType):
        _flatten_result(op)


def _flatten_result(op: ir.Operation) -> None:
    """Replace a call that returns a tuple by one that returns its elements, and by a tuple of these."""
    type_ = ir.TupleType(op.results[0].type)
    elements = dict(_flat_elements(type_))
    attributes = {name: op.attributes[name] for name in op.attributes}
    with ir.InsertionPoint(op), op.location:
        if _ALIASES in attributes:
            attributes[_ALIASES] = ir.Attribute.parse(
                _TUPLE_INDICES.sub(lambda found: _flat_index(op, found[1], list(elements)), str(attributes[_ALIASES]))
            )
        flat = ir.Operation.create(op.name, list(elements.values()), list(op.operands), attributes)
        op.results[0].replace_all_uses_with(_tuple_of(type_, iter(flat.results)))
    op.erase()


def _flat_index(op: ir.Operation, indices: str, positions: Sequence[tuple[int, ...]]) -> str:
    """Return where the element of a tuple at ``indices`` is among results, as aliases say it: nothing for the only."""
    path = tuple(int(index) for index in indices.split(",") if index.strip())
    if path not in positions:
        raise unsupported(op, f"no array is at {list(path)} of its result, as {_ALIASES} says")
    position = positions.index(path)
    return f"output_tuple_indices = [{position if len(positions) > 1 else ''}]"


def _flat_elements(type_: ir.TupleType, outer: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], ir.Type]]:
    """Yield the positions, outer tuple's first, and types of what is in a tuple and is none."""
    for position in range(type_.num_types):
        element = type_.get_type(position)
        if isinstance(element, ir.TupleType):
            yield from _flat_elements(element, (*outer, position))
        else:
            yield (*outer, position), element


def _tuple_of(type_: ir.TupleType, elements: Iterator[ir.OpResult]) -> ir.Value:
    """Make a tuple, of tuples perhaps, of the next of ``elements``."""
    made: list[ir.Value] = []
    for position in range(type_.num_types):
        element = type_.get_type(position)
        made.append(_tuple_of(element, elements) if isinstance(element, ir.TupleType) else next(elements))
    return ir.Operation.create(_TUPLE, [type_], made).results[0]


def _forward_element(op: ir.Operation) -> None:
    """Replace get_tuple_element by the element, if the tuple was made in sight."""
    producer = op.operands[0].owner
    reason = "tuples are supported only where they are made and taken apart in one function"
    if isinstance(producer, ir.Block):
        raise unsupported(op, reason)
    if producer.name != _TUPLE:
        raise unsupported(producer, reason)
    tuple_op = producer.operation
    replace_op(op, [tuple_op.operands[ir.IntegerAttr(op.attributes["index"]).value]])


def _forward_inner_barrier(op: ir.Operation) -> None:
    """Replace a barrier between scalars, as in what a reduction combines elements by: there is nothing to keep."""
    if op.parent is not None and op.parent.name not in _WITH_BARRIERS:
        _forward(op)


_WITH_BARRIERS = frozenset(("func.func", "stablehlo.while", "stablehlo.case", "stablehlo.if"))
_WRAPPERS: Mapping[str, Callable[[ir.Operation], None]] = {
    "stablehlo.optimization_barrier": _forward_inner_barrier,
    "stablehlo.custom_call": _rewrite_custom_call,
    "stablehlo.get_tuple_element": _forward_element,
}
