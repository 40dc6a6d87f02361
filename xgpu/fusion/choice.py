"""Chooses the emitter of each kernel, by its heroes."""

from collections.abc import Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.captures import captured, maker
from xgpu.analysis.concatenations import Concatenation, concatenation_of, walk_of
from xgpu.analysis.heroes import Form, follow
from xgpu.analysis.in_place import IN_PLACE, updated_operands
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.analysis.root_indices import Stored, at_root_indices
from xgpu.analysis.scan_shape import ScanShape
from xgpu.analysis.transposes import Transpose, moves_rows, needs_tile, transpose_of
from xgpu.dtypes import dtype_of_element
from xgpu.fusion.grouping.groups import Group
from xgpu.fusion.grouping.row_programs import ROWS
from xgpu.fusion.grouping.slice_kernels import INPUT_SLICES
from xgpu.fusion.loops.recurrences import RECURRENCE_KIND
from xgpu.indexing.access import shape_of
from xgpu.indexing.hlo_maps import access_kind
from xgpu.reasons import Reason

MOST_TILES = 4
"""Transposes that one kernel may tile; their shared memory bounds how many blocks are resident."""

_IN_PLACE = Reason("it updates arrays in their own memory")
_MERGED = {
    INPUT_SLICES: Reason("slices of one value, of several shapes"),
    ROWS: Reason("a row program: threads hold their rows from one reduction to the next"),
    RECURRENCE_KIND: Reason("a loop of the program whose states are computed element by element"),
}
_ROWS = Reason("neighbours in memory are combined")
_COLUMNS = Reason("elements are combined that are no neighbours in memory")
_SUMS = Reason("each thread sums products for long, whichever elements its neighbours take")
_TILE = Reason("reading or writing would not coalesce in a loop: a transpose goes through shared memory")
_JOINED = Reason("a walk over the operands of a concatenation, each in its own order")
_WHOLE = Reason("a loop over the concatenation is better than one over its operands")
_PLAIN = Reason("results are computed at their own indices, and no transpose or concatenation asks for tiles")
"""Reasons for the choice of an emitter."""


@dataclass(frozen=True)
class Choice:
    """A kernel to write: its emitter's name, its heroes, the values that it stores, and the reason for that emitter.

    ``aliased`` has an entry for each root: the value whose memory it takes over, None for one in memory of its own.
    """

    emitter: str
    heroes: tuple[ir.Operation, ...]
    roots: tuple[ir.Value, ...]
    aliased: tuple[ir.Value | None, ...]
    why: Reason


def choose(group: Group, stored: Stored) -> list[Choice]:
    """Return the kernels of a group."""
    if group.kind.name in IN_PLACE:
        aliased = [value for hero in group.heroes for value in updated_operands(hero)]
        return [Choice(group.kind.name, tuple(group.heroes), tuple(group.roots), tuple(aliased), _IN_PLACE)]
    if group.kind.name in _MERGED:
        return [_choice(group.kind.name, group.heroes, group.roots, _MERGED[group.kind.name])]
    if group.kind.name == "reduce":
        is_rows = ReductionShape.of(group.heroes[0]).is_rows
        emitter, why = ("reduce_row", _ROWS) if is_rows else ("reduce_column", _COLUMNS)
        return [_choice(emitter, group.heroes, group.roots, why)]
    if group.kind.name == "scan":
        is_rows = ScanShape.of(group.heroes[0]).is_rows
        emitter, why = ("scan_row", _ROWS) if is_rows else ("scan_column", _COLUMNS)
        return [_choice(emitter, group.heroes, group.roots, why)]
    return _loops(group, stored)


def _loops(group: Group, stored: Stored) -> list[Choice]:
    """Return one loop kernel for each shape among the roots."""
    by_shape: dict[tuple[int, ...], list[ir.Value]] = {}
    for value in group.roots:
        by_shape.setdefault(shape_of(value), []).append(value)
    if group.heroes:
        # Contractions: each thread takes long for its element, and which elements neighbours take is of no consequence.
        return [_choice("loop", (), values, _SUMS) for values in by_shape.values()]
    return [_loop(values, stored) for values in by_shape.values()]


def _loop(roots: Sequence[ir.Value], stored: Stored) -> Choice:
    """Return the kernel of roots of one shape: a loop, or another emitter if heroes and roots correspond one to one.

    Transposes are then tiled, and concatenations walked operand by operand where that is faster.
    """
    found: dict[tuple[Transpose, tuple[int, ...]], list[ir.Operation]] = {}
    joined: dict[Concatenation, list[ir.Operation]] = {}
    for op in at_root_indices(roots, stored):
        if op.name == "stablehlo.concatenate":
            joined.setdefault(concatenation_of(op), []).append(op)
        if op.name == "stablehlo.transpose":
            transpose = transpose_of(op)
            if transpose is not None and needs_tile(transpose, _bits(op.results[0]), min(map(_bits, roots))):
                found.setdefault((transpose, shape_of(op.operands[0])), []).append(op)
    if len(found) == 1:
        (heroes,) = found.values()
        return _choice("transpose", heroes[:MOST_TILES], roots, _TILE)
    if not found and not joined:
        joined = _joined_elsewhere(roots, stored)
    if not found and len(joined) == 1:
        (heroes,) = joined.values()
        emitter = walk_of(heroes, roots, stored)
        why = _WHOLE if emitter == "loop" else _JOINED
        return _choice(emitter, heroes if emitter != "loop" else (), roots, why)
    if found or joined:
        number = len(found) + len(joined)
        why = Reason("no tile serves {} transposes and concatenations that move elements differently", (number,))
        return _choice("loop", (), roots, why)
    return _choice("loop", (), roots, _PLAIN)


def _joined_elsewhere(roots: Sequence[ir.Value], stored: Stored) -> dict[Concatenation, list[ir.Operation]]:
    """Return the row-preserving concatenations that all roots follow, element by element; none if one root does not."""
    forms: dict[ir.Value, Form | None] = {}
    joined: dict[Concatenation, list[ir.Operation]] = {}
    pending = list(roots)
    while pending:
        value = pending[-1]
        op = None if isinstance(value.owner, ir.Block) or stored(value) else maker(value)
        if value in forms or op is None or not (_keeps_rows(op) or op.name == "stablehlo.concatenate"):
            forms.setdefault(value, None)
            pending.pop()
        elif op.name == "stablehlo.concatenate":
            layout = concatenation_of(op)
            if layout.axis == len(layout.shape) - 1:
                joined.setdefault(layout, []).append(op)
                forms[value] = Form.of_hero(value)
            else:
                forms[value] = None
        elif unknown := [operand for operand in op.operands if operand not in forms]:
            pending += unknown
        else:
            forms[value] = follow(op, [forms[operand] for operand in op.operands])
    beside = [operand for value, form in forms.items() if form for operand in maker(value).operands]
    beside = [operand for operand in beside if forms.get(operand) is None]
    heroes = {op for ops in joined.values() for op in ops}
    is_whole = all(forms[root] is not None for root in roots) and not _depends_on(beside, heroes, stored)
    return joined if is_whole else {}


def _depends_on(values: Sequence[ir.Value], heroes: set[ir.Operation], stored: Stored) -> bool:
    """Whether one of ``values`` depends on a result of ``heroes``, at whichever indices."""
    pending, seen = list(values), set(values)
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block) or stored(value):
            continue
        op = maker(value)
        if op in heroes:
            return True
        operands = {*op.operands, *captured(op)} - seen
        seen |= operands
        pending += operands
    return False


def _keeps_rows(op: ir.Operation) -> bool:
    """Whether an operation reads one element of its operands for each of its own, and keeps rows together."""
    if op.name == "stablehlo.transpose":
        transpose = transpose_of(op)
        return transpose is None or moves_rows(transpose, _bits(op.results[0]))
    return access_kind(op) == "elementwise" or is_bitcast(op)


def _bits(value: ir.Value) -> int:
    return dtype_of_element(ir.RankedTensorType(value.type).element_type).storage_bits


def _choice(emitter: str, heroes: Sequence[ir.Operation], roots: Sequence[ir.Value], why: Reason) -> Choice:
    return Choice(emitter, tuple(heroes), tuple(roots), (None,) * len(roots), why)
