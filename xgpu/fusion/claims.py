"""Checks of the promises that attributes make of operations, in text of a level up to ``fusions`` that a person gave.

The passes before the planner, and the planner, record their findings as attributes, and emitters rely on them. Each is
checked here, but for one: that a region is commutative cannot be.
"""

from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.dialects.attributes import BY_THREADS, BY_WARPS, COMMUTATIVE, FIRST_EXTREME, PRODUCT, RECURRENCE
from xgpu.dialects.base import Problem
from xgpu.fusion.loops.recurrences import Recurrence
from xgpu.fusion.loops.steps import step_of
from xgpu.indexing.tiles.product_maps import Product
from xgpu.indexing.tiles.ragged_maps import product_of
from xgpu.indexing.tiles.warp_tiles import warp_problem
from xgpu.structure import dtype_of, nested


def claim_problems(module: ir.Module) -> list[Problem]:
    """Return an error for each attribute on an operation that it does not fit; kinds are verified elsewhere."""
    with module.context, ir.Location.unknown():
        return [
            Problem(op, f"'{op.name}' attribute '{name}': {problem}")
            for op in nested(module.operation)
            for name, check in _CHECKS.items()
            if name in op.attributes and (problem := check(op)) is not None
        ]


def _extreme_problem(op: ir.Operation) -> str | None:
    if op.name != REDUCE or len(op.results) != 2 or COMMUTATIVE not in op.attributes:
        return f"expected a {REDUCE} of elements and their positions with '{COMMUTATIVE}'"
    dtypes = [dtype_of(result) for result in op.results]
    if dtypes[0].kind == "complex" or not dtypes[1].is_integer:
        types = ", ".join(str(result.type) for result in op.results)
        return f"expected elements that have an order and positions that are integers, got {types}"
    return None


def _recurrence_problem(op: ir.Operation) -> str | None:
    recurrence = Recurrence.of(op)
    step = None if recurrence is None else step_of(recurrence)
    if step is None or not step.is_of_own_elements():
        own = "that computes each element of its state from the same element"
        return f"expected a loop of known length {own}, or one that runs until no element needs another iteration"
    return None


def _product_problem(op: ir.Operation) -> str | None:
    instruction = ir.StringAttr(op.attributes[PRODUCT]).value
    if instruction == BY_THREADS:
        return None
    return warp_problem(Product(op)) if instruction == BY_WARPS else product_of(op).problem()


_CHECKS: Mapping[str, Callable[[ir.Operation], str | None]] = {
    FIRST_EXTREME: _extreme_problem,
    RECURRENCE: _recurrence_problem,
    PRODUCT: _product_problem,
}
