"""The values that a kernel stores, and the operations that it computes at the same indices."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE
from xgpu.analysis.transposes import moves_rows, transpose_of
from xgpu.indexing.access import identity_map, integer, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.records import dataclass
from xgpu.structure import captured, defining_op, dtype_of

Stored = Callable[[ir.Value], bool]
"""Predicate of values that a kernel reads from memory: stored before it runs, or from around its block."""


MOST_ROOTS = 16
"""Values that one kernel, or a part of one, stores at most; more would run out of registers."""


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


def overwritten_where_read(
    parts: Sequence[KernelWalk], overwritten: Sequence[ir.Value | None], stored: Stored
) -> set[ir.Value]:
    """Return the stored values that roots may overwrite: only the threads that do so read each element.

    Each of the ``parts`` has blocks of its own. ``overwritten`` has an entry for each root: the value in whose place it
    would be, or None.
    """
    if not any(value is not None for value in overwritten):
        return set()
    reads = [own_and_moved(part, stored) for part in parts]
    readers = Counter(value for own, moved in reads for value in own | moved)
    part_of = [number for number, part in enumerate(parts) for _ in part.roots]
    return {
        value
        for value, number in zip(overwritten, part_of, strict=True)
        if value is not None and readers[value] == 1 and value in reads[number][0] - reads[number][1]
    }


def own_and_moved(walk: KernelWalk, stored: Stored) -> tuple[set[ir.Value], set[ir.Value]]:
    """Return what is computed from at the indices of the roots and of what is walked, and what at others.

    Some may be in both: what is computed at those indices may be computed at others too, where something moves it; then
    all that it reads is read there.
    """
    walked = [value for hero in walk.heroes for value in list(hero.operands)[: len(hero.results)]]
    own, moved = {*walk.roots, *walked}, {value for hero in walk.heroes for value in hero.operands} - {*walked}
    pending = [*((value, True) for value in own), *((value, False) for value in moved)]
    while pending:
        value, at_own = pending.pop()
        op = defining_op(value)
        if op is None or stored(value) or op in walk.heroes:
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
