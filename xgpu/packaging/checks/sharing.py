"""Whether threads of a block meet in shared memory: one writes an element that another accesses, no barrier between.

Accesses of one phase, of all iterations of loops, are put side by side: for each of their points which thread accesses
which element. Conditions that say less than that are left out, and so are blocks, as each has shared memory of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from xgpu.indexing.affine import AffineExpr, constant, dim, linearize
from xgpu.indexing.bijection import reached
from xgpu.packaging.checks.accesses import Access
from xgpu.structure import defining_op

_AT_RUN_TIME = "which element of shared memory is accessed depends on values known at run time only"
_MEETING = "threads may access one element of shared memory with no barrier between, one of them writing"
_STRAY = "not all threads may reach a barrier"
_MANY = "the maps of accesses to shared memory have too many points to be decided"


def is_shared(access: Access) -> bool:
    """Whether an access is one to memory that all threads of a block have."""
    made = None if access.array is None else defining_op(access.array)
    return made is not None and made.name == "xgpu.allocate_shared"


def meetings(accesses: Sequence[Access], barriers_are_met: bool) -> Iterator[str]:
    """Yield why accesses to shared memory might be races."""
    if any(each.updates for each in accesses) and not barriers_are_met:
        yield _STRAY
    phases: dict[tuple[object, int], list[Access]] = {}
    for each in accesses:
        phases.setdefault((each.array, each.phase), []).append(each)
    for together in phases.values():
        if any(each.updates for each in together) and (reason := _meeting(together)):
            yield reason


def _meeting(accesses: Sequence[Access]) -> str | None:
    """Return why accesses to one array, in one phase, may be a race; None if they are none."""
    if combining := [each.op.name for each in accesses if not each.is_plain]:
        return f"{combining[0]} combines values in shared memory"
    if any(not each.point.is_known for each in accesses):
        return _AT_RUN_TIME
    try:
        pairs = [_threads_and_elements(each) for each in accesses]
    except ValueError:
        return _MANY
    # A row says that a thread accesses an element.
    each, counts = np.unique(np.unique(np.concatenate(pairs, axis=1), axis=1)[1], return_counts=True)
    written = np.concatenate([pair[1] for pair, access in zip(pairs, accesses, strict=True) if access.updates])
    return _MEETING if np.isin(each[counts > 1], written).any() else None


def _threads_and_elements(access: Access) -> npt.NDArray[np.int64]:
    """Return which thread accesses which element, at least: each pair is a column."""
    point, map_ = access.point, access.point.map
    element = linearize(map_.results, access.shape)
    needed = set(point.threads) | element.variables()[0]
    if needed & point.blocks:
        raise ValueError("blocks use other elements of their memory")
    constraints = [pair for pair in map_.constraints if pair[0].variables()[0] <= needed]
    thread: AffineExpr = constant(0)
    for number in sorted(point.threads):
        thread = thread * map_.dims[number].size + dim(number)
    reduced = replace(map_, results=(thread, element), constraints=tuple(constraints)).remove_unused_dims()[0]
    return reached(reduced)
