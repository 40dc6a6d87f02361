"""Reductions whose accumulators have another type than what they combine, which StableHLO allows."""

from collections.abc import Iterator
from typing import Any

from xgpu import ir
from xgpu.hlo.source_location import unsupported
from xgpu.structure import element_of

_FOLDS = ("stablehlo.reduce", "stablehlo.reduce_window")
_SELECTION = "stablehlo.select_and_scatter"


def check_accumulators(op: ir.Operation) -> None:
    """Raise Unsupported for an operation that combines elements of one type in a region on another."""
    for values in _combined(op):
        elements = {str(element_of(value)) for value in values}
        if len(elements) > 1:
            types = " and ".join(sorted(elements))
            raise unsupported(op, f"it combines elements of different types, {types}: convert them before")


def _combined(op: ir.Operation) -> Iterator[list[ir.Value[Any]]]:
    """Yield each result with the operands and block arguments that must have its element type."""
    count = len(op.results)
    if op.name in _FOLDS:
        arguments = op.regions[0].blocks[0].arguments
        groups = [(i, count + i) for i in range(count)]
        for number, group in enumerate(groups):
            yield [op.results[number], *(values[i] for i in group for values in (op.operands, arguments))]
    elif op.name == _SELECTION:
        arguments = [argument for region in op.regions for argument in region.blocks[0].arguments]
        yield [op.results[0], *op.operands, *arguments]
