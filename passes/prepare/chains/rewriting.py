"""Shared parts of rewrites of attention in a chain: its products, and the order of its result."""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.dialects.chain import returned
from xgpu.emit.families.attention.tiles import FULL
from xgpu.hlo.stablehlo_builder import fill_region, shape_of, splat, tensor
from xgpu.hlo.tensor_cores import ALGORITHM, PRECISION
from xgpu.structure import copy_operation, producer


def described_product(
    attention: Attention, batch: tuple[list[int], list[int]], keys: tuple[int, int]
) -> dict[str, ir.Attribute]:
    """Return the attributes of a product like the second one, whose left operand are the weights.

    So columns are the last dimension of the result: in memory they are neighbours.
    """
    given = attention.second.attributes
    described = {name: given[name] for name in (PRECISION, ALGORITHM) if name in given}
    if attention.weight and PRECISION in described:
        described[PRECISION] = ir.ArrayAttr.get(list(reversed(ir.ArrayAttr(described[PRECISION]))))
    numbers = ir.stablehlo.DotDimensionNumbers.get(*batch, [keys[0]], [keys[1]])
    return {**described, "dot_dimension_numbers": numbers}


def result_order(attention: Attention) -> list[int]:
    """Return the dimensions of the second product as they are if the weights are its left operand."""
    rank = len(shape_of(attention.second.results[0]))
    return [number for number in range(rank) if number != attention.sums.column] + [attention.sums.column]


def moved_after(op: ir.Operation, attention: Attention, value: ir.Value) -> ir.Value:
    """Write what a chain does with its second product, whose ``value`` is given."""
    path, end = [], returned(op)[0]
    while end != attention.second.results[0]:
        path.append(producer(end))
        end = producer(end).operands[0]
    copies = {end: value}
    for each in reversed(path):
        copy_operation(each, copies)
    return copies[returned(op)[0]]


def reduced(
    values: Sequence[ir.Value],
    position: int,
    starts: Sequence[float],
    combine: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """Return the combinations of some arrays along a dimension."""
    shape, scalar = shape_of(values[0]), tensor([], FULL)
    del shape[position]
    described: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get([position])}
    operands = [*values, *(splat(start, scalar) for start in starts)]
    types = [tensor(shape, FULL)] * len(values)
    op = ir.Operation.create("stablehlo.reduce", types, operands, described, regions=1)
    fill_region(op, [scalar] * len(operands), combine)
    return list(op.results)
