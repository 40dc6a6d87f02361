"""Loops over the results of short reductions, as kernels whose threads share the reduced elements.

Each consumer recomputes a short reduction, as it does an elementwise operation. But where a loop stores arrays of the
reduced elements, a kernel that walks them can store both.
"""

from xgpu import ir
from xgpu.analysis.heroes import Form, follow, is_packed
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.analysis.root_indices import Stored, at_root_indices
from xgpu.fusion.grouping.families import Families
from xgpu.fusion.grouping.groups import MOST_OPERATIONS, Group
from xgpu.structure import backward_slice, in_order


def shared_reductions(group: Group, families: Families, stored: Stored) -> Group | None:
    """Return the loop ``group`` as a kernel of the short reductions that its roots follow; None if it is none.

    Rows are of two, four or eight elements, so that a thread has one vector, beside that of its neighbour: parts of
    vectors would be stored apart.
    """
    if group.heroes or group.parts or any(map(is_packed, group.roots)):
        return None
    found = [op for op in at_root_indices(group.roots, stored) if families.shared_kind_of(op) is not None]
    kinds = {families.shared_kind_of(op) for op in found}
    if len(kinds) != 1 or not _is_power_of_two(ReductionShape.of(found[0]).per_result):
        return None
    (kind,) = kinds
    forms: dict[ir.Value, Form] = {value: Form.of_hero(value) for hero in found for value in hero.results}
    needed = set[ir.Operation]()
    for op in backward_slice(group.roots, stored):
        needed.add(op)
        if len(needed) > MOST_OPERATIONS:
            return None
    for op in in_order(needed - {*found}):
        read = [forms.get(operand) for operand in op.operands]
        if any(read):
            form = follow(op, read)
            if form is None:
                return None
            forms[op.results[0]] = form
    reads_others = any(operand in forms for hero in found for operand in hero.operands)
    if kind is None or reads_others or any(root not in forms for root in group.roots):
        return None
    return Group(kind, group.level, tuple(in_order(found)), group.roots, forms)


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
