"""Products of one left operand whose results meet: something is computed from them element by element.

One kernel then computes them all, and what follows, without any of them in memory.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.heroes import Form, follow
from xgpu.costs.products.products import MOST_RIGHTS, is_fast, pays_joined
from xgpu.device import Device
from xgpu.emit.families.products.product import follows, in_common
from xgpu.emit.families.products.schedule import device_problem
from xgpu.indexing.tiles.ragged_maps import product_of
from xgpu.structure import dtype_of, longest_chains, producer

type _Kind = tuple[int, object]
"""The numbers of products that lie one after the other up to some, and what these have in common."""


def by_warp_groups(op: ir.Operation, target: Device) -> bool:
    """Whether warp groups can multiply a product."""
    return device_problem(target) is None and product_of(op).problem() is None


def are_fast(products: Sequence[ir.Operation], target: Device) -> bool:
    """Whether one kernel, by warp groups, computes products that meet, or one alone, about as fast as a library.

    And those that meet faster than a kernel for each.
    """
    product, result_bytes = product_of(products[0]), max(dtype_of(op.results[0]).bits // 8 for op in products)
    given = product.sizes, product.element_bytes, result_bytes, target, len(products)
    # Rows in groups a library multiplies by all matrices.
    are_alone = product.has_groups or is_fast(*given)
    return are_alone and (len(products) == 1 or pays_joined(*given, product.has_groups))


def meetings(block: ir.Block, products: Sequence[ir.Operation]) -> list[list[ir.Operation]]:
    """Return those ``products`` of a block that one kernel can compute, two or more together.

    They have as many others one after the other before them, so that none depends on another.
    """
    depths = longest_chains((view.operation for view in block.operations), set(products).__contains__)
    alike: dict[_Kind, list[ir.Value]] = {}
    for op in products:
        alike.setdefault((depths[op.results[0]], in_common(op)), []).append(op.results[0])
    found = _Meetings({value: kind for kind, values in alike.items() if len(values) > 1 for value in values})
    if found.kinds:
        found.follow(block)
    groups = dict.fromkeys(group for group in found.groups.values() if len(group) > 1)
    return [[producer(value) for value in group] for group in groups]


class _Meetings:
    """Products by their ``kinds``, in ``groups`` that meet."""

    def __init__(self, kinds: dict[ir.Value, _Kind]):
        self.kinds = kinds
        self.groups: dict[ir.Value, tuple[ir.Value, ...]] = {value: (value,) for value in kinds}

    def follow(self, block: ir.Block) -> None:
        """Join the groups of products that meet in a block."""
        forms = {value: Form.of_hero(value) for value in self.kinds}
        # A value is computed from some products: one of each kind stands for those that meet.
        origins = {value: {kind: value} for value, kind in self.kinds.items()}
        for op in (view.operation for view in block.operations):
            before = [origins[operand] for operand in dict.fromkeys(op.operands) if operand in forms]
            form = follow(op, [forms.get(operand) for operand in op.operands]) if before else None
            if form is not None and follows(op, form):
                forms[op.results[0]] = form
                origins[op.results[0]] = self._meet(before)

    def _meet(self, before: Sequence[dict[_Kind, ir.Value]]) -> dict[_Kind, ir.Value]:
        """Join groups of products that meet in a value; return the value's last origins."""
        met: dict[_Kind, ir.Value] = {}
        last = max(depth for origins in before for depth, _ in origins)
        for kind, value in (item for origins in before for item in origins.items() if item[0][0] == last):
            one, other = self.groups[met.setdefault(kind, value)], self.groups[value]
            if one != other and len(one) + len(other) <= MOST_RIGHTS:
                self.groups |= dict.fromkeys((*one, *other), (*one, *other))
        return met
