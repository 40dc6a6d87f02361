"""Rewrites of operations of nests: the same one on other variables, or on another buffer."""

from collections.abc import Mapping, Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.nests.loops import WhereOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.structure import attributes_of


def on_variables(
    op: ir.Operation,
    places: Mapping[ir.Value, AffineExpr],
    new: Sequence[ir.Value],
    sizes: Sequence[Interval],
) -> ir.Operation:
    """Replace an operation with a map by one on the variables ``new``, of which ``places`` says what old ones are.

    ``sizes`` are the ranges of the new ones, which are the first dimensions of the map then.
    """
    map_ = cast(WhereOp, op.opview).map
    first = len(op.operands) - len(map_.dims)
    operands, count = list(op.operands), len(new)
    kept = [number for number in range(len(map_.dims)) if operands[first + number] not in places]
    dims = (*sizes, *(map_.dims[number] for number in kept))
    exprs = {number: dim(count + place) for place, number in enumerate(kept)}
    narrowed = []
    for number, interval in enumerate(map_.dims):
        if number not in kept:
            exprs[number] = places[operands[first + number]]
            if not interval.contains_interval(exprs[number].interval(dims, ())):
                narrowed.append((exprs[number], interval))
    changed = IndexingMap(
        dims,
        (),
        tuple(result.substitute(exprs) for result in map_.results),
        (*narrowed, *((expr.substitute(exprs), interval) for expr, interval in map_.constraints)),
    )
    variables = [*new, *(operands[first + number] for number in kept)]
    return on_operands(op, [*operands[:first], *variables], changed)


def on_operands(op: ir.Operation, operands: Sequence[ir.Value], map_: IndexingMap) -> ir.Operation:
    """Replace an operation by the same one on other operands, with another map; return that."""
    new = ir.Operation.create(
        op.name,
        results=[result.type for result in op.results],
        operands=list(operands),
        attributes={**attributes_of(op), "map": attributes.map_attribute(map_)},
        regions=len(op.regions),
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for old, region in zip(op.regions, new.regions, strict=True):
        old.blocks[0].append_to(region)
    for result, other in zip(op.results, new.results, strict=True):
        result.replace_all_uses_with(other)
    op.erase()
    return new


def inside(block: ir.Block) -> ir.InsertionPoint:
    """End an empty block; return where its operations go."""
    with ir.InsertionPoint(block):
        YieldOp.build([])
    return ir.InsertionPoint(list(block.operations)[-1].operation)


def condition(map_: IndexingMap, variables: Sequence[ir.Value]) -> tuple[ir.InsertionPoint, ir.InsertionPoint]:
    """Write a condition; return where the operations go that are done if it holds, and if it does not."""
    where = WhereOp.build(map_, variables)
    return inside(where.then), inside(where.otherwise)
