"""Rewrites scatters to those that a kernel can make in place."""

import math

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.attributes import ORDERED
from xgpu.dtypes import dtype_of_element
from xgpu.frontend.stablehlo_builder import element_of, shape_of
from xgpu.fusion.combiners import combiners, has_own_types, is_unordered
from xgpu.fusion.in_place import SCATTER, has_separate_places, updated_operands
from xgpu.fusion.regions import nested
from xgpu.fusion.scatter_builder import split_complex, split_results
from xgpu.fusion.scatter_sums import MOST_WINDOWS, sum_in_any_order
from xgpu.fusion.scatter_winners import keep_last_updates
from xgpu.indexing.scatter_maps import scatter_maps
from xgpu.options import Options

_FILLS = ("stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.iota")
"""Operations that a kernel makes anew at less cost than a copy of what they made."""


def rewrite_scatters(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Remove scatters that change nothing, and give each operand of the others memory that it alone reads.

    Where two updates of one place must come in their order, because the options ask for results that do not depend on
    timing or because several operands must agree on the last one, a scatter becomes others whose order does not matter,
    or is marked to be made in order.
    """
    for op in _scatters(main):
        if not has_own_types(op):
            continue
        if not all(math.prod(shape_of(value)) for value in (*op.results, *_updates(op))):
            for result, operand in zip(op.results, updated_operands(op), strict=True):
                result.replace_all_uses_with(operand)
            op.erase()
        else:
            _remove_order(op, options.deterministic)
    for op in _scatters(main):
        _copy_operands(op)


def _scatters(main: ir.func.FuncOp) -> list[ir.Operation]:
    return [op for op in nested(main.operation) if op.name == SCATTER]


def _remove_order(op: ir.Operation, deterministic: bool) -> None:
    """Rewrite a scatter whose result depends on the order of its updates, if that is to be defined."""
    found = combiners(op)
    if has_separate_places(op) or not all(each.alone for each in found):
        return
    overwritten = [i for i, each in enumerate(found) if each.function == "overwrite"]
    others = [i for i in range(len(found)) if i not in overwritten]
    if not deterministic and len(overwritten) < 2:
        return
    parts = [*([overwritten] if overwritten else []), *([i] for i in others)]
    for part in split_results(op, parts) if len(found) > 1 else [op]:
        _remove_order_alone(part, deterministic)


def _remove_order_alone(op: ir.Operation, deterministic: bool) -> None:
    """Rewrite a scatter that overwrites all its operands, or has only one."""
    function = combiners(op)[0].function
    dtype = dtype_of_element(element_of(op.operands[0]))
    if function == "overwrite":
        if not keep_last_updates(op):
            op.attributes[ORDERED] = ir.UnitAttr.get()
    elif not deterministic or is_unordered(op):
        return
    elif function == "add" and dtype.is_float and scatter_maps(op).windows < MOST_WINDOWS:
        sum_in_any_order(op)
    elif function == "add" and dtype.kind == "complex":
        for part in split_complex(op):
            _remove_order_alone(part, deterministic)
    else:
        op.attributes[ORDERED] = ir.UnitAttr.get()


def _updates(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[len(op.results) + 1 :]


def _copy_operands(op: ir.Operation) -> None:
    """Have a copy updated instead of an operand that is another operand too, or is as cheap to make anew."""
    for position in range(len(op.results)):
        operand = op.operands[position]
        with ir.InsertionPoint(op), op.location:
            if not isinstance(operand.owner, ir.Block) and operand.owner.operation.name in _FILLS:
                fill = operand.owner.operation
                if len(list(operand.uses)) > 1 or fill.block != op.block:
                    op.operands[position] = fill.clone().results[0]
            elif list(op.operands).count(operand) > 1:
                # A reshape to the same shape is a value of its own, which a kernel stores.
                op.operands[position] = ir.stablehlo.reshape(operand.type, operand)
