"""Facts of the values of a first grouping, by number, for those that choose what else to store."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Self

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.costs.values import byte_size, elements
from xgpu.fusion.fallback import VIEWS
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.numbered_block import Number, NumberedBlock
from xgpu.records import dataclass
from xgpu.structure import users_of
from xgpu.target_machine import WARP_SIZE

_BROADCAST = "stablehlo.broadcast_in_dim"


@dataclass(frozen=True, eq=False)
class Known:
    """Facts of a ``grouping`` for its rounds, by numbers of the values of its ``block``.

    ``stored_at`` has the level of the kernel that stores each value of ``grouping``, ``levels`` the lowest level of one
    that can read it. ``read_at`` is ``stored_at`` with what is given. ``own`` has the group whose hero, or whose hero's
    epilogue, makes a value: only its kernel can store it. ``falling_back`` has the operations left to XLA that make
    values, ``backwards`` all operations, the last one first, each with whether its result may be stored for several
    kernels.
    """

    grouping: Grouping
    block: NumberedBlock
    stored_at: Mapping[Number, int]
    levels: Sequence[int]
    read_at: Mapping[Number, int]
    own: Mapping[Number, Group]
    falling_back: Set[int]
    backwards: Sequence[tuple[int, bool]]

    @classmethod
    def of(cls, grouping: Grouping, block: NumberedBlock, candidates: Sequence[bool]) -> Self:
        """Look values up once; ``candidates`` tells of which operations results may be stored."""
        stored_at = {block.numbers[value]: level for value, level in grouping.stored_at.items()}
        given = {number: -1 for number, maker in enumerate(block.makers) if maker is None}
        own = {block.numbers[value]: group for group in grouping.begun for value in group.forms}
        made_by_xla = [block.numbers[value] for _, op in grouping.fallbacks for value in op.results]
        falling_back = {number for value in made_by_xla if (number := block.makers[value]) is not None}
        backwards = [
            (number, candidates[number] and number not in falling_back) for number in reversed(range(len(candidates)))
        ]
        levels = [grouping.level(value) for value in block.values]
        return cls(grouping, block, stored_at, levels, given | stored_at, own, falling_back, backwards)

    def made_at(self, value: Number) -> int:
        """Return the lowest level of a kernel that can compute a value."""
        return self.levels[value] - (value in self.stored_at)


def may_be_stored(block: NumberedBlock) -> list[bool]:
    """Return for each operation whether kernels that need its result may read it, stored, instead of computing it.

    It has one, for which kernels do something, and more than to widen elements.
    """
    return [_may_be_stored(block, number) for number in range(len(block.operations))]


def _may_be_stored(block: NumberedBlock, number: int) -> bool:
    results = block.results[number]
    if len(results) != 1 or not block.elements(results[0]):
        return False
    if block.names[number] in VIEWS:
        return _is_spread_across(block.operations[number])
    return not _only_widens(block.operations[number])


def _is_spread_across(op: ir.Operation) -> bool:
    """Whether ``op`` is a transpose of which threads read each element again and again, each time across lines."""
    if op.name != "stablehlo.transpose" or is_bitcast(op):
        return False
    size = elements(op.results[0])
    readers = list(_readers(op.results[0]))
    return bool(readers) and all(
        each.name == _BROADCAST and elements(each.results[0]) >= WARP_SIZE * size for each in readers
    )


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    """Yield what reads a value, behind broadcasts that add dimensions of one element."""
    for user in users_of(value):
        if user.name == _BROADCAST and elements(user.results[0]) == elements(value):
            yield from _readers(user.results[0])
        else:
            yield user


def _only_widens(op: ir.Operation) -> bool:
    """Whether ``op`` makes wider elements of narrow ones, which are stored in its place: readers make them as well."""
    if op.name != "stablehlo.convert":
        return False
    return byte_size(op.operands[0], 1) < byte_size(op.results[0], 1)
