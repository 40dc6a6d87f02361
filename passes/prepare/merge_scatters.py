"""The pass `merge-scatters`."""

import math
from collections.abc import Hashable, Iterator, Sequence, Set
from itertools import batched
from typing import Any, ClassVar

from xgpu import ir
from xgpu.analysis.combiners import BINARY, combiners, has_own_types, is_binary, promises
from xgpu.analysis.constants.zeros import has_no_negative_zero
from xgpu.analysis.in_place import SCATTER, has_runs, has_separate_places
from xgpu.hlo.constants import is_number, splat_of
from xgpu.hlo.stablehlo_builder import hlo, shape_of
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import behind, dtype_of, element_of, is_argument, producer, replace_op, terminator_of, users_of

_ADD = next(name for name, function in BINARY.items() if function == "add")
_MOST = 16
"""Scatters that become one: a kernel has the code of the indices and updates of all of them."""
_LEAST_BITS = 32
"""Bits of elements that updates are added to one by one, whatever they are."""


@dataclass(frozen=True)
class MergeScatters(BlockRewrite):
    """Merges scatters that add to one array one after the other, or to arrays of zeros that are then added up.

    The gradient of what reads a table several times, such as the corners of a cell, is such a sum: it would set as many
    arrays to zero as there are reads, and read all of them again. A sum that is stored, of such a scatter and another
    array, becomes a scatter to that array, as where a loop adds up gradients: nothing is set to zero and added. That
    array has elements of 32 bits or more, as sums of many small updates lose more where they begin with a large one,
    and no negative zeros, which adding zeros would change. Any other combination of an element and its updates that is
    one operation is merged as well, where each scatter updates the result of the one before. Scatters that promise
    indices once each, or many updates in order, are left as they are, as what is merged could not. Needs: nothing.
    (Source: XLA's algebraic simplifier merges sums of two scatters.)

    ```mlir
    %0 = "stablehlo.scatter"(%zeros, %i, %u) ({ ... stablehlo.add ... })
        : (tensor<64xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<64xf32>
    %1 = "stablehlo.scatter"(%zeros, %j, %v) ({ ... stablehlo.add ... })
        : (tensor<64xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<64xf32>
    %sum = stablehlo.add %0, %1 : tensor<64xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.concatenate %i, %j, dim = 0 : (tensor<8x1xi32>, tensor<4x1xi32>) -> tensor<12x1xi32>
    %1 = stablehlo.concatenate %u, %v, dim = 0 : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
    %sum = "stablehlo.scatter"(%zeros, %0, %1) ({ ... stablehlo.add ... })
        : (tensor<64xf32>, tensor<12x1xi32>, tensor<12xf32>) -> tensor<64xf32>
    ```
    """

    NAME: ClassVar[str] = "merge-scatters"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCATTER,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Chain the scatters of sums, then merge those of each chain."""
        chains: dict[ir.Value, list[ir.Operation]] = {}
        sums = operations_of(block, frozenset((_ADD,)))
        stored, known = _stored(sums, block), set[ir.Value]()
        for op in sums:
            _chain_summands(op, chains, stored, known)
        for op in operations_of(block, self.OPERATIONS):
            if _is_mergeable(op) and _is_last(op):
                _merge(list(_chain(op))[::-1])


def _stored(sums: Sequence[ir.Operation], block: ir.Block) -> Set[ir.Value]:
    """Return those of ``sums`` that ``block`` returns, that a scatter updates, or that are part of such a sum."""
    found: set[ir.Value] = set()
    for op in reversed(sums):
        users = users_of(op.results[0])
        is_updated = all(user.name == SCATTER and user.operands[0] == op.results[0] for user in users)
        is_part = len(users) == 1 and users[0].name == _ADD and users[0].results[0] in found
        if users and (is_updated or is_part or all(user == terminator_of(block) for user in users)):
            found.add(op.results[0])
    return found


def _chain_summands(
    op: ir.Operation, chains: dict[ir.Value, list[ir.Operation]], stored: Set[ir.Value], known: set[ir.Value]
) -> None:
    """Replace the sum of two chains of scatters to zeros by a chain of both, and that of one and zeros by the chain.

    One of the summands may be another array, or a chain of scatters to one, if the sum is ``stored``. ``chains`` has
    those that are known, the first scatter first, by the result of the last: a sum of many is not walked again for each
    of them. ``known`` has what was found to have no negative zeros.
    """
    found = [value for value in op.operands if _is_only_summand(value, op.block)]
    for value in found:
        if value not in chains:
            chains[value] = list(_chain(producer(value)))[::-1]
    to_zeros = [value for value in found if _is_positive_zero(chains[value][0].operands[0])]
    if not to_zeros:
        return
    if len(found) == 2:
        longer, shorter = sorted(found, key=lambda value: (value in to_zeros, -len(chains[value])))
        begins = longer not in to_zeros and _can_begin(longer, op, stored, known)
        if begins or longer in to_zeros:
            _append(shorter, longer, op, chains)
            replace_op(op, [shorter])
            known.update([shorter] * begins)
        return
    other = next(value for value in op.operands if value != to_zeros[0])
    if _is_positive_zero(other):
        replace_op(op, to_zeros)
    elif _can_begin(other, op, stored, known):
        for each in chains[to_zeros[0]]:
            each.move_before(op)
        chains[to_zeros[0]][0].operands[0] = other
        replace_op(op, to_zeros)
        known.update(to_zeros)


def _append(shorter: ir.Value, longer: ir.Value, op: ir.Operation, chains: dict[ir.Value, list[ir.Operation]]) -> None:
    """Let the chain of ``shorter`` go on from the result of ``longer``, before their sum ``op``."""
    moved = chains.pop(shorter)
    for each in moved:
        each.move_before(op)
    moved[0].operands[0] = longer
    chains[longer] += moved
    chains[shorter] = chains.pop(longer)


def _can_begin(value: ir.Value, op: ir.Operation, stored: Set[ir.Value], known: Set[ir.Value]) -> bool:
    """Whether scatters may add to ``value``, which ``op`` adds what they make of zeros to."""
    return op.results[0] in stored and dtype_of(value).bits >= _LEAST_BITS and has_no_negative_zero(value, known)


def _is_only_summand(value: ir.Value, block: ir.Block) -> bool:
    """Whether ``value`` is a scatter of ``block`` that adds, and read by one sum alone."""
    if is_argument(value) or producer(value).block != block or len(users_of(value)) != 1:
        return False
    return _is_mergeable(producer(value)) and combiners(producer(value))[0].function == "add"


def _is_positive_zero(value: ir.Value) -> bool:
    """Whether all elements are zero, and none is a negative one, which a sum would keep."""
    value = behind(value, "stablehlo.broadcast_in_dim")
    if is_argument(value) or not is_number(value, 0):
        return False
    if producer(value).name == "stablehlo.complex":
        return all(map(_is_positive_zero, producer(value).operands))
    found: Any = splat_of(producer(value)) if producer(value).name == "stablehlo.constant" else None
    return found is not None and math.copysign(1, found.value) > 0


def _is_mergeable(op: ir.Operation) -> bool:
    """Whether a scatter combines the elements of one array with updates of their type, in any order.

    Not one whose kernel is better than that of a merged one: where updates of one place come together, or none meet.
    """
    if op.name != SCATTER or len(op.results) != 1 or not has_own_types(op) or promises(op, "unique_indices"):
        return False
    function = combiners(op)[0].function
    if not is_binary(function) or _scatter_dimension(op) is None or has_runs(op):
        return False
    return function == "add" or not has_separate_places(op)


def _chain(last: ir.Operation) -> Iterator[ir.Operation]:
    """Yield ``last``, then the scatters before it, of which each makes what the one after it updates."""
    op: ir.Operation | None = last
    while op is not None:
        yield op
        op = _before(op)


def _before(op: ir.Operation) -> ir.Operation | None:
    """Return the scatter of the same function whose result ``op`` updates and nothing else reads; None if none does."""
    updated = op.operands[0]
    if is_argument(updated) or len(users_of(updated)) != 1:
        return None
    before = producer(updated)
    if before.block != op.block or not _is_mergeable(before):
        return None
    return before if combiners(before)[0].function == combiners(op)[0].function else None


def _is_last(op: ir.Operation) -> bool:
    """Whether no scatter goes on with the chain of ``op``."""
    users = users_of(op.results[0])
    if len(users) != 1 or users[0].name != SCATTER or users[0].operands[0] != op.results[0]:
        return True
    return not _is_mergeable(users[0]) or _before(users[0]) is None


def _merge(chain: Sequence[ir.Operation]) -> None:
    """Merge the scatters of a chain, the first one first, whose indices and updates have the same form."""
    if len(chain) < 2:
        return
    alike: dict[Hashable, list[ir.Operation]] = {}
    for op in chain:
        alike.setdefault(_form(op), []).append(op)
    parts = [part for ops in alike.values() for part in batched(ops, _MOST)]
    if len(parts) == len(chain):
        return
    last, updated = chain[-1], chain[0].operands[0]
    with ir.InsertionPoint(last), last.location:
        for part in parts:
            updated = _merged(updated, part)
    replace_op(last, [updated])
    for op in reversed(chain[:-1]):
        op.erase()


def _merged(updated: ir.Value, ops: Sequence[ir.Operation]) -> ir.Value:
    """Create the scatter of the indices and updates of all ``ops`` to ``updated``, and return its result."""
    merged = ops[0].clone()
    merged.operands[0] = updated
    if len(ops) > 1:
        merged.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
        indices, updates = _dimensions(ops[0])
        for number, dimension in ((1, indices), (2, updates)):
            merged.operands[number] = hlo.concatenate([op.operands[number] for op in ops], dimension)
        # Concatenated just now, before which the scatter was cloned.
        merged.move_after(producer(merged.operands[2]))
    return merged.results[0]


def _numbers(op: ir.Operation) -> ir.stablehlo.ScatterDimensionNumbers:
    return ir.stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])


def _scatter_dimension(op: ir.Operation) -> int | None:
    """Return the first dimension of the indices that counts updates, not batches; None if there is none."""
    numbers = _numbers(op)
    left_out = {numbers.index_vector_dim, *numbers.scatter_indices_batching_dims}
    return next((i for i in range(len(shape_of(op.operands[1]))) if i not in left_out), None)


def _dimensions(op: ir.Operation) -> tuple[int, int]:
    """Return the dimensions of the indices and of the updates along which updates are added."""
    numbers, own = _numbers(op), _scatter_dimension(op)
    assert own is not None
    windows = numbers.update_window_dims
    counted = [i for i in range(len(shape_of(op.operands[2]))) if i not in windows]
    return own, counted[own - (numbers.index_vector_dim < own)]


def _form(op: ir.Operation) -> Hashable:
    """Return what indices and updates have in common that can be concatenated."""
    forms = []
    for value, dimension in zip(list(op.operands)[1:], _dimensions(op), strict=True):
        sizes = [size for number, size in enumerate(shape_of(value)) if number != dimension]
        forms.append((str(element_of(value)), tuple(sizes)))
    return (str(op.attributes["scatter_dimension_numbers"]), *forms)
