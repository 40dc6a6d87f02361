"""Heroes: the operations that kernels are built around, and the epilogues that may follow them.

A *hero* is an operation that needs an iteration space of its own, such as a reduction. Its *epilogue* are the
operations that follow it and depend, in each element, on one element of the hero alone; the *form* of a value of the
epilogue says which one.
"""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.dialects.attributes import HELD
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import identity_map, integers, shape_of
from xgpu.indexing.affine import delinearize, dim, linearize
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import dtype_of

SMALL_REDUCTION = 8
"""Elements up to which a reduction is recomputed by each consumer, as an elementwise operation is."""
PRODUCT = "stablehlo.dot_general"
FEW_TERMS = 4
"""Products of a sum up to which so is a matrix product: a thread computes a result in the time of reading it."""


def is_hero(op: ir.Operation) -> bool:
    """Whether ``op`` combines more elements than each consumer recomputes, or is marked as one whose rows are held."""
    return combines_many(op) or (op.name == REDUCE and HELD in op.attributes)


def combines_many(op: ir.Operation) -> bool:
    """Whether ``op`` combines more elements than each consumer recomputes; not if a result is without elements."""
    if op.name not in OPERATIONS or OPERATIONS[op.name].kind not in ("reduce", "contract"):
        return False
    if any(not math.prod(shape_of(value)) for value in op.results):
        return False
    if op.name == PRODUCT:
        return terms_of(op) > FEW_TERMS
    return op.name != REDUCE or ReductionShape.of(op).per_result > SMALL_REDUCTION


def combined(op: ir.Operation) -> int:
    """Return how many elements of an operand each element of a reduction or product is made of; 1 of all others."""
    if op.name == REDUCE:
        return ReductionShape.of(op).per_result
    return terms_of(op) if op.name == PRODUCT else 1


def terms_of(product: ir.Operation) -> int:
    """Return how many products each element of the result of a contraction is the sum of."""
    return math.prod(each.size for each in accesses(product)[0].map.symbols)


def is_reduction(op: ir.Operation) -> bool:
    """Whether ``op`` is a hero of the kernels that share the elements of a reduction among threads."""
    # Results that share a byte are for one thread.
    return op.name == REDUCE and is_hero(op) and not any(map(is_packed, op.results))


def is_packed(value: ir.Value) -> bool:
    """Whether several elements of an array share a byte."""
    return dtype_of(value).is_packed


@dataclass(frozen=True)
class Form:
    """The one-to-one map between the indices of a hero's result and of a value of its epilogue.

    ``forward`` goes from the hero's to the value's, ``backward`` from the value's to the hero's.
    """

    forward: IndexingMap
    backward: IndexingMap

    @classmethod
    def of_hero(cls, hero: ir.Value) -> "Form":
        """Return the form of a hero's own result: the identity."""
        same = identity_map(shape_of(hero))
        return cls(same, same)


def follow(op: ir.Operation, forms: Sequence[Form | None]) -> Form | None:
    """Return the form of the result of ``op`` if it can be part of an epilogue, else None.

    ``forms`` holds, for each operand, its form, or None for an operand that does not depend on the hero.
    """
    present = [form for form in forms if form is not None]
    if not present or any(form != present[0] for form in present):
        return None
    if op.name not in OPERATIONS or len(op.results) != 1:
        return None
    kind = access_kind(op)
    if kind == "elementwise":
        same = identity_map(shape_of(op.results[0]))
        reads = accesses(op)
        return present[0] if all(forms[a.operand] is None or a.map == same for a in reads) else None
    step = _rearrangement(op) if kind == "indexing" and len(op.operands) == 1 else None
    if step is None:
        return None
    (read,) = accesses(op)
    backward = read.map.compose(present[0].backward).simplify()
    return Form(present[0].forward.compose(step).simplify(), backward)


def _rearrangement(op: ir.Operation) -> IndexingMap | None:
    """Return the map from operand to result indices of an operation that permutes elements, else None."""
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    indices = [dim(i) for i in range(len(source))]
    if op.name == "stablehlo.transpose":
        results = [indices[i] for i in integers(op, "permutation")]
    elif op.name == "stablehlo.reshape" or (
        op.name == "stablehlo.broadcast_in_dim"
        and math.prod(source) == math.prod(target)
        and integers(op, "broadcast_dimensions") == sorted(integers(op, "broadcast_dimensions"))
    ):
        results = list(delinearize(linearize(indices, source), target))
    else:
        return None
    return IndexingMap(identity_map(source).dims, (), tuple(results)).simplify()


def forms_of(block: ir.Block, heroes: Sequence[ir.Operation]) -> dict[ir.Value, Form]:
    """Return the forms of the results of ``heroes`` and of their epilogues in a fusion's body."""
    forms: dict[ir.Value, Form] = {value: Form.of_hero(value) for hero in heroes for value in hero.results}
    for op in block.operations:
        operation = op.operation
        read = [forms.get(operand) for operand in operation.operands]
        if not any(read) or operation in heroes:
            continue
        form = follow(operation, read)
        if form is not None:
            forms[operation.results[0]] = form
    return forms
