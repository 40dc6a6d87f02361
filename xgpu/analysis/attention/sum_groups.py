"""Products whose results are read element by element by further products alone: chains without a softmax.

Retention, attention with a sigmoid in place of the softmax, and layers of few columns have this form, and so have their
gradients: no product's result is needed in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.analysis.attention.attention import DOT, is_tiled, products_behind
from xgpu.analysis.attention.gradient import drops_nothing
from xgpu.indexing.access import identity_map, shape_of
from xgpu.structure import users_of


@dataclass(frozen=True)
class SumGroup:
    """All ``products`` that are computed again for ``ends``, the products that read what is made of them."""

    products: tuple[ir.Operation, ...]
    ends: tuple[ir.Operation, ...]


def sum_group_of(first: ir.Operation) -> SumGroup | None:
    """Return the products that are computed with the ``first`` one; None if something else reads what is made of it."""
    products: dict[ir.Operation, None] = {first: None}
    ends: dict[ir.Operation, None] = {}
    pending = [first.results[0]]
    seen = set(pending)
    while pending:
        value = pending.pop()
        for user in users_of(value):
            found: Sequence[ir.Value] = user.results
            if user.block != first.block:
                return None
            if user.name == DOT:
                ends[user] = None
                added = [op for op in products_behind(value, identity_map(shape_of(value))) if op not in products]
                products.update(dict.fromkeys(added))
                found = [result for op in added for result in op.results]
            elif not is_tiled(user) and not drops_nothing(user):
                return None
            pending += [each for each in found if each not in seen]
            seen.update(found)
    return SumGroup(tuple(products), tuple(ends)) if ends and not ends.keys() & products.keys() else None
