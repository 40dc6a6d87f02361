"""Row programs as they grow, and the reductions that their elements depend on, each at which row."""

import math
from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.analysis.root_indices import moves_elements
from xgpu.fusion.grouping.groups import Group, Grouping, Levels
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import captured, producer


@dataclass
class RowProgram:
    """A growing row program: its first group, all its members, that one included, and the level to run at."""

    first: Group
    members: list[Group]
    level: int

    @cached_property
    def shape(self) -> ReductionShape:
        """That of the reductions."""
        return ReductionShape.of(self.first.heroes[0])

    @property
    def heroes(self) -> list[ir.Operation]:
        """The reductions of all members."""
        return [hero for member in self.members for hero in member.heroes]

    @property
    def roots(self) -> list[ir.Value]:
        """The results of all members."""
        return [root for member in self.members for root in member.roots]


class RowTrace:
    """Per-element dependences of a row program, assuming ``trial``'s new group were merged into it."""

    def __init__(
        self, grouping: Grouping, now: Levels, program: RowProgram, heroes: set[ir.Operation], trial: RowProgram
    ):
        """Of the block's ``heroes``, only those in ``trial``, the program with the group, are computed in it.

        ``now`` has the levels of ``grouping`` with what other programs changed.
        """
        self._grouping = grouping
        self._now = now
        self._level = program.level
        self._shape = program.shape
        self._made = {value for hero in program.heroes for value in hero.results}
        self._roots = set(program.roots)
        self._heroes = heroes
        self._own = set(trial.heroes)
        self._dependent: dict[ir.Value, bool] = {}

    def reads_nothing(self, values: Sequence[ir.Value]) -> bool:
        """Whether ``values`` can be computed before the program, independently of it."""
        return self._can_compute(values) and not any(self._dependent[value] for value in values)

    def reads_own_rows(self, values: Sequence[ir.Value]) -> bool:
        """Whether elements of ``values`` depend on the program's reductions at their own row only, each at one index.

        Values have the program's shape or another of as many elements in the same order.
        """
        if not self._can_compute(values):
            return False
        shapes = {shape_of(value) for value in values}
        return all(self._reads_rows([value for value in values if shape_of(value) == shape]) for shape in shapes)

    def _reads_rows(self, values: Sequence[ir.Value]) -> bool:
        """`reads_own_rows` for values of one shape, all of which can be computed."""
        shape = shape_of(values[0])
        row_map = self._shape.row_map_of(shape)
        pending: list[tuple[ir.Value, IndexingMap | None]] = [(value, identity_map(shape)) for value in values]
        at: dict[ir.Value, IndexingMap | None] = {}
        while pending:
            value, map_ = pending.pop()
            if not self._dependent[value]:
                continue
            if value in at:
                if map_ is None or at[value] != map_:
                    return False
                continue
            at[value] = map_
            if value in self._made:
                if map_ != row_map:
                    return False
                continue
            pending += _operands_at(producer(value), map_)
        return True

    def _can_compute(self, values: Sequence[ir.Value]) -> bool:
        """Whether ``values`` depend only on the program's inputs and reductions; records which depend on reductions."""
        pending = list(values)
        while pending:
            value = pending[-1]
            if value in self._dependent:
                pending.pop()
                continue
            if self._is_leaf(value):
                self._dependent[value] = value in self._made
                continue
            op = producer(value)
            falls_back = self._grouping.falls_back(op) and self._grouping.is_stored(value)
            if falls_back or self._moves_rows(op) or (op in self._heroes and op not in self._own):
                return False
            operands = list(self._grouping.read_by(op))
            unknown = [operand for operand in operands if operand not in self._dependent]
            if unknown:
                pending += unknown
                continue
            self._dependent[value] = any(self._dependent[operand] for operand in operands)
        return True

    def _moves_rows(self, op: ir.Operation) -> bool:
        """Whether ``op`` moves parts of rows; numbers of which a row has one are read as well from elsewhere."""
        return moves_elements(op) and math.prod(shape_of(op.results[0])) > self._shape.results

    def _is_leaf(self, value: ir.Value) -> bool:
        if value in self._made:
            return True
        return value not in self._roots and self._now.stored_before(value, self._level)


def _operands_at(op: ir.Operation, map_: IndexingMap | None) -> list[tuple[ir.Value, IndexingMap | None]]:
    """Return the operands of ``op``, computed at the indices of ``map_``, each with the map at which it is read.

    The map is None where it is not known, or not the same on every path.
    """
    if map_ is None or access_kind(op) not in ("elementwise", "indexing"):
        return [(operand, None) for operand in (*op.operands, *captured(op))]
    found: list[tuple[ir.Value, IndexingMap | None]] = []
    same = identity_map(shape_of(op.results[0]))
    for access in accesses(op):
        operand = op.operands[access.operand]
        if access.runtime:
            found.append((operand, None))
        else:
            found.append((operand, map_ if access.map == same else map_.compose(access.map).simplify()))
    return found
