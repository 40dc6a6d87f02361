"""The messages of blocks that share scans: which block tells what where, and which thread takes it."""

from xgpu.emit.reduction_tiling import WARP, Groups, whole
from xgpu.indexing.affine import AffineExpr, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass

ANCHORS = WARP
"""Every so many of the blocks that share a scan, one is an anchor."""


@dataclass(frozen=True)
class Messages:
    """Messages of blocks to those after them, where ``parts`` of them share the scans of ``columns`` columns.

    There are ``stretches`` of so many columns, the blocks of which are neighbours; a thread has ``thread_columns``. A
    block tells what its own part of each column is combined to or, if it is an *anchor*, what all parts up to its own
    are. So what is before a block follows from the messages since the last anchor, of which each lane of a warp takes
    one. (Source: the look-back of Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", in
    which a block takes what it finds, and may find the one or the other.)
    """

    threads: Groups
    parts: int
    stretches: int
    columns: int
    thread_columns: int

    @property
    def part(self) -> AffineExpr:
        """The number of a thread's block among those that share its scan, in the order of the scan."""
        return self.threads.unit // self.stretches % self.parts

    def own(self, words: int) -> IndexingMap:
        """Return (thread, block) -> where a thread's columns begin in its block's message, ``words`` words for each.

        There is no such thread in the blocks that are anchors.
        """
        return self._of_block(words, Interval(1, ANCHORS - 1))

    def of_anchor(self, words: int) -> IndexingMap:
        """Return the same for the anchors alone."""
        return self._of_block(words, whole(1))

    def _of_block(self, words: int, numbers: Interval) -> IndexingMap:
        threads = self.threads
        first = threads.unit * self.columns + threads.thread * self.thread_columns
        tells = (threads.thread, whole(self.columns // self.thread_columns))
        return threads.map((), [first * words], [tells, (self.part % ANCHORS, numbers)])

    def taken(self, words: int) -> IndexingMap:
        """Return (thread, block) -> where a warp's columns begin in the message that a lane takes.

        Lanes take the messages since the last anchor in order, up to `last_lane`.
        """
        threads = self.threads
        lane = threads.thread % WARP
        unit = threads.unit - (self.last_lane + 1 - lane) * self.stretches
        first = unit * self.columns + self._warp_column
        is_later, is_there = (self.part, Interval(1, self.parts - 1)), (self.last_lane - lane, whole(ANCHORS))
        return threads.map((), [first * words], [is_later, is_there, self._has_column])

    @property
    def last_lane(self) -> AffineExpr:
        """The lane that takes the message of the block before."""
        return (self.part + (ANCHORS - 1)) % ANCHORS

    @property
    def warp_columns(self) -> int:
        """Columns of which a warp takes the messages, if there are any left for it."""
        return max(1, self.columns // self.threads.warps)

    @property
    def _warp_column(self) -> AffineExpr:
        return self.threads.thread // WARP * self.warp_columns

    @property
    def _has_column(self) -> Constraint:
        return self._warp_column, whole(self.columns)

    def before_writing(self) -> IndexingMap:
        """Return (thread, block)[column of the warp] -> where in a tile is what is before, on the first lane."""
        threads = self.threads
        conditions = [(threads.thread % WARP, whole(1)), self._has_column]
        return threads.map((self.warp_columns,), [self._warp_column + symbol(0)], conditions)

    def before_reading(self) -> IndexingMap:
        """Return (thread, block)[column of the thread] -> where in the tile is what is before it."""
        tellers = self.columns // self.thread_columns
        place = self.threads.thread % tellers * self.thread_columns + symbol(0)
        return self.threads.map((self.thread_columns,), [place], [])
