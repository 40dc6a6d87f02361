"""Values of which an element takes a thread so long that a kernel of its own should begin it with more threads.

A sum that a program makes by halves, or by every second element, step by step, computes each element of each step once.
But its last one needs all, and one thread would compute them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from xgpu import ir
from xgpu.costs.evaluations import Evaluations
from xgpu.costs.recomputation import LOAD
from xgpu.costs.values import elements, instructions, is_immediate
from xgpu.device import Device
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.numbered_block import Number
from xgpu.structure import users_of

_COMPUTED = ("elementwise", "indexing", "piecewise")
_LAUNCHES = 8
"""Launches that an element takes at least, to be looked at."""
_GAIN = 4
"""Times as many instructions as with a value stored on the way that an element must take."""
_MOST_CANDIDATES = 64
"""Values on the way to an element that are looked at, at most."""


def long_elements(
    operations: Sequence[ir.Operation], stored: Set[ir.Value], evaluations: Evaluations[Any], target: Device
) -> list[ir.Value]:
    """Return values to store beside ``stored``, so that no element is computed by one thread from very many.

    ``operations`` are those of a block that kernels compute. An element is looked at where few threads compute some:
    of what is stored, joined with others, or read by heroes. The value on the way to it is stored whose elements take
    about the root of its instructions, if less than a quarter of them are left then.
    """
    most = _LAUNCHES * target.launch_seconds / target.instruction_latency
    computed = {op.results[0]: op for op in operations if _is_computed(op)}
    bounds = _bounds(computed, stored)
    found: dict[ir.Value, None] = {}
    for value in computed:
        is_end = value in stored or _is_end(value, computed)
        if is_end and bounds[value] > most and elements(value) < target.resident_threads:
            _begin(value, computed, stored, evaluations, found, most)
    return list(found)


def _is_computed(op: ir.Operation) -> bool:
    is_one = len(op.results) == 1 and op.name in OPERATIONS
    return is_one and access_kind(op) in _COMPUTED


def _bounds(computed: Mapping[ir.Value, ir.Operation], stored: Set[ir.Value]) -> dict[ir.Value, float]:
    """Return how many instructions an element of each value takes at most, if all that it reads is another's."""
    bounds: dict[ir.Value, float] = {}
    for value, op in computed.items():
        operands = [operand for operand in set(op.operands) if not is_immediate(operand)]
        read = [LOAD if operand in stored else bounds.get(operand, LOAD) for operand in operands]
        together = max(read, default=0) if access_kind(op) == "piecewise" else sum(read)
        bounds[value] = min(instructions(op) + together, 1e9)
    return bounds


def _is_end(value: ir.Value, computed: Mapping[ir.Value, ir.Operation]) -> bool:
    """Whether one thread computes an element: of a result, or of an operand of heroes or of what joins pieces."""
    users = users_of(value)
    return not users or any(
        not len(user.results) or user.results[0] not in computed or access_kind(user) == "piecewise" for user in users
    )


def _begin(
    end: ir.Value,
    computed: Mapping[ir.Value, ir.Operation],
    stored: Set[ir.Value],
    evaluations: Evaluations[Any],
    found: dict[ir.Value, None],
    most: float,
) -> None:
    """Add what is to be stored on the way to elements of ``end``."""
    block = evaluations.block

    def count(value: ir.Value, *chosen: ir.Value) -> float:
        def is_stored(number: Number) -> bool:
            each = block.values[number]
            return each not in computed or each in stored or each in found or each in chosen

        return evaluations.instructions_again(block.numbers[value], is_stored, math.inf)

    whole = count(end)
    if whole <= most or not math.isfinite(whole):
        return
    candidates = list(islice(_on_the_way(end, computed, {*stored, *found} - {end}), _MOST_CANDIDATES + 1))
    while whole > most and len(candidates) <= _MOST_CANDIDATES:
        root = math.sqrt(LOAD * whole)
        chosen = next((value for value in candidates if value not in found and count(value) <= root), None)
        if chosen is None or _GAIN * (count(end, chosen) + count(chosen)) > whole:
            return
        found[chosen] = None
        whole = count(end)


def _on_the_way(end: ir.Value, computed: Mapping[ir.Value, ir.Operation], stored: Set[ir.Value]) -> Iterator[ir.Value]:
    """Yield the values that ``end`` is computed from at several indices, the last ones first."""
    pending, seen = [end], {end}
    slice_: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        if value in stored or value not in computed:
            continue
        slice_.add(value)
        new = set(computed[value].operands) - seen
        seen |= new
        pending += new
    for value in reversed(list(computed)):
        if value in slice_ and value != end and not OPERATIONS[computed[value].name].is_view and _is_moved(value):
            yield value


def _is_moved(value: ir.Value) -> bool:
    """Whether other values take elements of ``value`` from several places."""
    places = set()
    pending = [value]
    while pending:
        current = pending.pop()
        for user in users_of(current):
            if not _is_computed(user) or access_kind(user) == "elementwise":
                continue
            if OPERATIONS[user.name].is_view:
                pending += user.results
                continue
            places |= {(current, each.map) for each in accesses(user) if user.operands[each.operand] == current}
    return len(places) > 1
