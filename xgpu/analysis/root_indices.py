"""The values that a kernel stores, and the operations that it computes at the same indices."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.analysis.transposes import moves_rows, transpose_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import identity_map, integer, shape_of
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.hlo_maps import access_kind, accesses, reshape_map
from xgpu.records import dataclass
from xgpu.structure import backward_slice, captured, defining_op, dtype_of, in_order, longest_chains, producer

Stored = Callable[[ir.Value], bool]
"""Predicate of values that a kernel reads from memory: stored before it runs, or from around its block."""


MOST_ROOTS = 16
"""Values that one kernel, or a part of one, stores at most; more would run out of registers."""

_MOST_READS = 256
"""Values that are followed, at their places, to find where a kernel reads an array; further ones may be anywhere."""


def at_root_indices(roots: Sequence[ir.Value], stored: Stored, behind_bitcasts: bool = False) -> Iterator[ir.Operation]:
    """Yield the operations that are computed at the roots' own indices, roots first.

    ``behind_bitcasts``: or at the same places of an array of another shape.
    """
    pending, seen = list(roots), set(roots)
    while pending:
        value = pending.pop()
        op = defining_op(value)
        if op is None or stored(value) or op.name == SCATTER:
            continue
        yield op
        operands = set(op.operands) if behind_bitcasts and is_bitcast(op) else _at_own_indices(op)
        pending += operands - seen
        seen |= operands


@dataclass(frozen=True)
class KernelWalk:
    """The work of a kernel's blocks, or of a part of one: ``roots``, each element by one thread.

    Threads reduce ``heroes`` together: they walk the operands, each element of which one of them reads.
    """

    roots: Sequence[ir.Value]
    heroes: Sequence[ir.Operation] = ()

    @property
    def walked(self) -> list[ir.Value]:
        """The arrays that the threads go over."""
        return [value for hero in self.heroes for value in list(hero.operands)[: len(hero.results)]]

    def overwrites_last(self, root: ir.Value, value: ir.Value, stored: Stored) -> bool:
        """Whether nothing reads an element of ``value`` when a thread has stored ``root`` in its place.

        All that is walked, and the roots, may read the element at their own indices. Threads have roots that are stored
        in another order at other indices than the rest. Heroes that need each other's results are reduced in stages,
        each of which goes over the operands' elements. What is stored once for each row is stored after all of them.
        """

        def is_given(each: ir.Value) -> bool:
            return stored(each) or defining_op(each) in self.heroes

        def is_read_by(start: ir.Value) -> bool:
            slice_ = backward_slice([start], is_given)
            return start == value or any(value in (*op.operands, *captured(op)) for op in slice_)

        turned = self.turned(is_given)
        if any(map(is_read_by, {*self.roots, *self.walked} - {root} if root in turned else turned)):
            return False
        if not self.heroes or math.prod(shape_of(root)) < math.prod(shape_of(self.walked[0])):
            return True
        made = [*self.roots, *(value for hero in self.heroes for value in hero.results)]
        chains = longest_chains(in_order(backward_slice(made, stored)), self.heroes.__contains__)
        last = chains.get(root, 0)
        later = [each for each in self.roots if chains.get(each, 0) > last]
        for hero in self.heroes:
            if chains.get(hero.results[0], 1) - 1 > last:
                later += list(hero.operands)
        return not any(map(is_read_by, later))

    def turned(self, is_given: Stored) -> set[ir.Value]:
        """Return the roots that threads store for which they have the heroes' results in another order."""
        return {root for root in self.roots if follows(root, self.heroes, is_given, _is_turn)} if self.heroes else set()


def follows(
    root: ir.Value,
    heroes: Sequence[ir.Operation],
    is_given: Stored,
    by: Callable[[ir.Operation], bool] = lambda op: True,
) -> bool:
    """Whether a root is computed from a result of ``heroes``, also by an operation that ``by`` tells of."""
    results = {value for hero in heroes for value in hero.results}
    following, found = set(results), root in results and by(heroes[0])
    for op in in_order(backward_slice([root], is_given)):
        if not following.isdisjoint(op.operands):
            following.update(op.results)
            found = found or by(op)
    return found


def _is_turn(op: ir.Operation) -> bool:
    return op.name == "stablehlo.transpose" and not is_bitcast(op)


class _Reads:
    """Reads of a value by the threads of a kernel, of which one overwrites each element.

    Each thread of a loop stores its results when it has computed all of them. Threads that reduce a row have read all
    of it when one of them stores what follows from its reduction.
    """

    def __init__(self, walk: KernelWalk, value: ir.Value, stored: Stored):
        self._walk, self._value = walk, value
        self._is_given: Stored = lambda each: stored(each) or defining_op(each) in walk.heroes

    def end_before(self, root: ir.Value) -> bool:
        """Whether an element of ``root`` is stored when all has been read of what it overwrites.

        No element may be read for those of other rows, of which other threads read it later.
        """
        shape, walk = shape_of(self._value), self._walk
        if not walk.heroes:
            same = identity_map(shape).results
            return all(shape_of(each) == shape and self._are_at(same, each) for each in walk.roots)
        hero, count = walk.heroes[0], math.prod(shape_of(self._value))
        if (
            hero.name != REDUCE
            or math.prod(shape_of(hero.results[0])) != count
            or math.prod(shape_of(walk.walked[0])) == count
        ):
            return False
        # An element of a root that is stored in another order is in the place of another row's.
        if not follows(root, walk.heroes, self._is_given) or root in walk.turned(self._is_given):
            return False
        reduction = ReductionShape.of(hero)
        of_row = reduction.row_map.compose(reshape_map(reduction.result_shape, shape)).simplify().results
        expected: dict[ir.Value, tuple[AffineExpr, ...]] = {}
        for each in (*walk.roots, *(value for hero in walk.heroes for value in hero.operands)):
            expected[each] = of_row if shape_of(each) == reduction.shape else ()
        for each in walk.roots:
            if math.prod(shape_of(each)) == count and each not in walk.turned(self._is_given):
                expected[each] = reshape_map(shape_of(each), shape).simplify().results
        return all(self._are_at(places, start) for start, places in expected.items())

    def _are_at(self, places: tuple[AffineExpr, ...], start: ir.Value) -> bool:
        """Whether an element of ``start`` needs no element of the value but that at ``places``, given by its indices.

        No array has an element at no indices, but a number.
        """
        depending = {self._value}
        for op in in_order(backward_slice([start], self._is_given)):
            if not depending.isdisjoint((*op.operands, *captured(op))):
                depending.update(op.results)
        first = start, identity_map(shape_of(start))
        pending, seen = [first] if start in depending else [], {first}
        while pending:
            each, map_ = pending.pop()
            if each == self._value:
                if map_.results != places or map_.constraints or map_.dims != first[1].dims:
                    return False
                continue
            op = producer(each)
            if op.name not in OPERATIONS or len(seen) > _MOST_READS:
                return False
            for access in accesses(op):
                read = op.operands[access.operand]
                if read not in depending:
                    continue
                if access.runtime:
                    return False
                found = read, map_.compose(access.map).simplify()
                if found not in seen:
                    seen.add(found)
                    pending.append(found)
        return True


def overwritten_where_read(
    parts: Sequence[KernelWalk], overwritten: Sequence[ir.Value | None], stored: Stored
) -> set[ir.Value]:
    """Return the stored values that roots may overwrite: only the threads that do so read each element.

    Each of the ``parts`` has blocks of its own. ``overwritten`` has an entry for each root: the value in whose place it
    would be, or None. Threads that reduce a row may read a number of it before one of them stores what follows.
    """
    if not any(value is not None for value in overwritten):
        return set()
    reads = [own_and_moved(part, stored) for part in parts]
    readers = Counter(value for own, moved in reads for value in own | moved)
    roots = [(root, number) for number, part in enumerate(parts) for root in part.roots]
    found = set()
    for value, (root, number) in zip(overwritten, roots, strict=True):
        if value is not None and readers[value] == 1:
            own, moved = reads[number]
            if value in own - moved:
                is_overwritten = parts[number].overwrites_last(root, value, stored)
            else:
                is_overwritten = value in moved and _Reads(parts[number], value, stored).end_before(root)
            if is_overwritten:
                found.add(value)
    return found


def own_and_moved(walk: KernelWalk, stored: Stored) -> tuple[set[ir.Value], set[ir.Value]]:
    """Return what is computed from at the indices of the roots and of what is walked, and what at others.

    Some may be in both: what is computed at those indices may be computed at others too, where something moves it; then
    all that it reads is read there.
    """

    def is_given(value: ir.Value) -> bool:
        return stored(value) or defining_op(value) in walk.heroes

    walked, turned = walk.walked, walk.turned(is_given)
    moved = {value for hero in walk.heroes for value in hero.operands} - {*walked}
    own, moved = _reads({*walk.roots, *walked} - turned, moved, is_given)
    if turned:
        others, more = _reads(turned, set(), is_given)
        own, moved = own | others, moved | more | (own & others)
    return own, moved


def _reads(own: set[ir.Value], moved: set[ir.Value], is_given: Stored) -> tuple[set[ir.Value], set[ir.Value]]:
    """Return what is computed from at the indices of ``own``, and what at others, where all of ``moved`` is."""
    pending = [*((value, True) for value in own), *((value, False) for value in moved)]
    while pending:
        value, at_own = pending.pop()
        op = defining_op(value)
        if op is None or is_given(value):
            continue
        kept = _at_own_indices(op) if at_own else set[ir.Value]()
        for operand in (*op.operands, *captured(op)):
            found = own if operand in kept else moved
            if operand not in found:
                found.add(operand)
                pending.append((operand, operand in kept))
    return own, moved


def _at_own_indices(op: ir.Operation) -> set[ir.Value]:
    """Return the operands of which an element of the result needs the same element alone.

    What moves elements may leave them where they are, as broadcasts to the same shape do that `jax.vmap` makes. The
    update of a slice leaves those around it.
    """
    if access_kind(op) not in ("elementwise", "indexing") and op.name != UPDATE_SLICE:
        return set()
    shape = shape_of(op.results[0])
    same = identity_map(shape)
    reads = [(op.operands[access.operand], access.map) for access in accesses(op)]
    moved = {operand for operand, map_ in reads if map_ != same or shape_of(operand) != shape}
    return {operand for operand, _ in reads} - moved


def moves_elements(op: ir.Operation) -> bool:
    """Whether ``op`` moves parts of rows, for which kernels of other families read and write better."""
    if op.name == "stablehlo.transpose":
        moved = transpose_of(op)
        return moved is not None and not moves_rows(moved, dtype_of(op.operands[0]).storage_bits)
    if op.name != "stablehlo.concatenate":
        return False
    return integer(op, "dimension") == len(shape_of(op.results[0])) - 1
