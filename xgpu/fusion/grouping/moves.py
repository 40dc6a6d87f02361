"""Operations that move elements within a kernel's results: transposes and concatenations that may ask for tiles."""

from collections.abc import Callable, Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.concatenations import Concatenation, Walk, concatenation_of, walk_of
from xgpu.analysis.heroes import Form, follow
from xgpu.analysis.root_indices import Stored, at_root_indices
from xgpu.analysis.transposes import FEWEST_IN_TILES, Transpose, moves_rows, needs_tile, transpose_of
from xgpu.costs.values import elements
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.hlo_maps import access_kind
from xgpu.structure import captured, dtype_of, is_argument, producer

_ONE_ELEMENT = ("elementwise", "indexing")
"""The operands' maps of operations that compute each element from one of each operand."""


class Moves:
    """The transposes and concatenations that compute ``roots`` of one shape; ``stored`` tells what is read from memory.

    ``transposes`` has those that a loop would not coalesce at, ``concatenations`` all, each by how they move elements.
    """

    def __init__(self, roots: Sequence[ir.Value], stored: Stored):
        self._roots, self._stored = roots, stored
        self.transposes: dict[tuple[Transpose, Shape], list[ir.Operation]] = {}
        self.concatenations: dict[Concatenation, list[ir.Operation]] = {}
        for op in at_root_indices(roots, stored):
            if op.name == "stablehlo.concatenate":
                self.concatenations.setdefault(concatenation_of(op), []).append(op)
            self._add_transpose(op)
        if not self.forms:
            self.concatenations = _joined_elsewhere(roots, stored)
        if not self.forms and elements(roots[0]) >= FEWEST_IN_TILES:
            for op in at_root_indices(roots, stored, behind_bitcasts=True):
                self._add_transpose(op)
            if self.transposes and not self._all_follow():
                self.transposes = {}

    def _add_transpose(self, op: ir.Operation) -> None:
        """Add an operation if it is a transpose at which a loop would not coalesce."""
        transpose = transpose_of(op) if op.name == "stablehlo.transpose" else None
        if transpose is not None and needs_tile(transpose, _bits(op.results[0]), min(map(_bits, self._roots))):
            self.transposes.setdefault((transpose, shape_of(op.operands[0])), []).append(op)

    def _all_follow(self) -> bool:
        """Whether each root follows the transposes, of whose results' or operands' shapes others may be."""
        heroes = {op for ops in self.transposes.values() for op in ops}
        forms = _forms(self._roots, self._stored, heroes.__contains__, lambda op: access_kind(op) in _ONE_ELEMENT)
        shapes = {shape_of(value) for op in heroes for value in (op.results[0], op.operands[0])}
        return all(forms[root] is not None or shape_of(root) in shapes for root in self._roots)

    @property
    def forms(self) -> int:
        """The number of ways in which elements are moved."""
        return len(self.transposes) + len(self.concatenations)

    @cached_property
    def joined(self) -> tuple[tuple[ir.Operation, ...], Walk] | None:
        """The concatenations with their fastest walk, if they are of one layout and nothing else moves elements."""
        if self.transposes or len(self.concatenations) != 1:
            return None
        (heroes,) = self.concatenations.values()
        return tuple(heroes), walk_of(heroes, self._roots, self._stored)


def _joined_elsewhere(roots: Sequence[ir.Value], stored: Stored) -> dict[Concatenation, list[ir.Operation]]:
    """Return the row-preserving concatenations that all roots follow, element by element; none if one root does not."""
    forms = _forms(roots, stored, lambda op: op.name == "stablehlo.concatenate" and _joins_rows(op), _keeps_rows)
    joined: dict[Concatenation, list[ir.Operation]] = {}
    for value, form in forms.items():
        if form is not None and producer(value).name == "stablehlo.concatenate":
            joined.setdefault(concatenation_of(producer(value)), []).append(producer(value))
    beside = [operand for value, form in forms.items() if form for operand in producer(value).operands]
    beside = [operand for operand in beside if forms.get(operand) is None]
    heroes = {op for ops in joined.values() for op in ops}
    is_whole = all(forms[root] is not None for root in roots) and not _depends_on(beside, heroes, stored)
    return joined if is_whole else {}


def _forms(
    roots: Sequence[ir.Value],
    stored: Stored,
    is_hero: Callable[[ir.Operation], bool],
    is_on_the_way: Callable[[ir.Operation], bool],
) -> dict[ir.Value, Form | None]:
    """Return the forms of ``roots``, and of what they are computed from, as far back as the heroes.

    None stands for a value that does not follow a hero, or is computed by an operation that is not on the way to one.
    """
    forms: dict[ir.Value, Form | None] = {}
    pending = list(roots)
    while pending:
        value = pending[-1]
        op = None if is_argument(value) or stored(value) else producer(value)
        if value in forms or op is None or not (is_hero(op) or is_on_the_way(op)):
            forms.setdefault(value, None)
            pending.pop()
        elif is_hero(op):
            forms[value] = Form.of_hero(value)
        elif unknown := [operand for operand in op.operands if operand not in forms]:
            pending += unknown
        else:
            forms[value] = follow(op, [forms[operand] for operand in op.operands])
    return forms


def _joins_rows(op: ir.Operation) -> bool:
    """Whether a concatenation lengthens rows."""
    layout = concatenation_of(op)
    return layout.axis == len(layout.shape) - 1


def _depends_on(values: Sequence[ir.Value], heroes: set[ir.Operation], stored: Stored) -> bool:
    """Whether one of ``values`` depends on a result of ``heroes``, at whichever indices."""
    pending, seen = list(values), set(values)
    while pending:
        value = pending.pop()
        if is_argument(value) or stored(value):
            continue
        op = producer(value)
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
    return dtype_of(value).storage_bits
