"""Accesses of a loop to consecutive elements: where the first of them is, and whether two of them meet."""

from dataclasses import replace
from math import gcd

from xgpu import ir
from xgpu.dialects.attributes import map_attribute
from xgpu.indexing.affine import AffineExpr, Atom, Mod, dim, weighted_sum
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.support.index_ops import create_apply, create_index
from xgpu.records import dataclass


@dataclass(frozen=True, slots=True)
class ConsecutiveAccess:
    """The indices from ``base`` on, one for each step of a loop.

    ``base`` maps ``operands`` and is a multiple of ``width``; ``backwards``: the first step accesses the last index.
    """

    base: IndexingMap
    operands: tuple[ir.Value, ...]
    width: int
    backwards: bool


def only_dims(map_: IndexingMap) -> IndexingMap:
    """Turn range variables into dimensions."""
    if not map_.symbols:
        return map_
    renamed = [dim(len(map_.dims) + i) for i in range(len(map_.symbols))]

    def convert(expr: AffineExpr) -> AffineExpr:
        return expr.substitute(None, renamed)

    constraints = tuple((convert(expr), bounds) for expr, bounds in map_.constraints)
    return IndexingMap(map_.dims + map_.symbols, (), tuple(map(convert, map_.results)), constraints)


def index_at(access: ConsecutiveAccess, offset: int) -> ir.Value:
    """Create the index ``offset`` elements after the base of ``access``."""
    expr = access.base.results[0] + offset
    if expr.is_constant:
        return create_index(expr.constant)
    if expr == dim(0):
        return access.operands[0]
    return create_apply(map_attribute(replace(access.base, results=(expr,))), access.operands)


def multiple_of(expr: AffineExpr) -> int:
    """Return a number that ``expr`` is a multiple of, also where that needs ``x`` and ``x mod 4`` to be congruent."""
    found = expr.divisor()
    for divisor in sorted({atom.divisor for atom, _ in expr.terms if isinstance(atom, Mod)}, reverse=True):
        congruent = weighted_sum(
            [
                (atom.expr, factor) if isinstance(atom, Mod) and atom.divisor % divisor == 0 else (_alone(atom), factor)
                for atom, factor in expr.terms
            ],
            expr.constant,
        )
        found = max(found, gcd(divisor, congruent.divisor()))
    return found


def _alone(atom: Atom) -> AffineExpr:
    return AffineExpr(((atom, 1),), 0)


def are_apart(one: ConsecutiveAccess, other: ConsecutiveAccess, count: int) -> bool:
    """Whether ``count`` elements from the one base on are others than those from the other base on."""
    operands = list(dict.fromkeys([*one.operands, *other.operands]))
    ranges = {
        operand: size for each in (one, other) for operand, size in zip(each.operands, each.base.dims, strict=True)
    }
    first, second = (
        each.base.results[0].substitute({i: dim(operands.index(value)) for i, value in enumerate(each.operands)})
        for each in (one, other)
    )
    apart = (first - second).interval([ranges[operand] for operand in operands], [])
    return apart.lower >= count or apart.upper <= -count
