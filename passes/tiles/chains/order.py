"""The order in which a block computes tiles of rows, and the steps of each: common to all of its roles.

Where rows see no keys beyond some, tiles of a matrix are computed in pairs, the first with the last, the second with
the last but one, and so on: pairs take the same time, and each block computes as many as any other.

Steps are left out by what a mask says. Where the logits of hidden keys are numbers, these keys have weights after all
if a row sees no others. That is found only when a tile is complete; blocks that have such a tile compute all of theirs
a second time, with all steps.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property

from xgpu import ir
from xgpu.dialects.attributes import HIDDEN, VISIBLE, map_of
from xgpu.dialects.block.waits import MbarrierArriveOp, MbarrierInitOp, MbarrierWaitOp
from xgpu.dialects.threads import ShuffleOp
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.llvm.memory import load, store
from xgpu.passes.support.scf_ops import create_if, create_index
from xgpu.passes.tiles.boxes import clamped
from xgpu.passes.tiles.chains.program import ChainProgram
from xgpu.passes.tiles.fragment_code import FragmentCode
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.roles import ThreadNumbers, equal
from xgpu.passes.tiles.structured import Values, WrittenLoop, counted, only_if
from xgpu.records import dataclass
from xgpu.structure import dtype_of
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_WORD = 4
_BARRIER = 8


@dataclass
class ChainTile:
    """A tile being written: its numbers, the round, its first step and the one after the last, what it carries."""

    at: Values
    round: ir.Value
    first: ir.Value
    end: ir.Value
    carried: Values


@dataclass(frozen=True, eq=False)
class ChainOrder:
    """The loops over the tiles of a block; ``memory`` has room for what decides whether there is a second round."""

    program: ChainProgram
    place: ThreadNumbers
    memory: ir.Value

    @staticmethod
    def bytes(groups: int) -> int:
        """Return how much memory it needs: an mbarrier, and a word for each warp that multiplies."""
        return 2 * _BARRIER + groups * (WARPGROUP_SIZE // WARP_SIZE) * _WORD

    @property
    def _warps(self) -> int:
        return self.program.schedule.groups * (WARPGROUP_SIZE // WARP_SIZE)

    @cached_property
    def visible(self) -> IndexingMap | None:
        """The map from a tile's numbers to the steps that rows see, None if they see all."""
        given = self.program.steps.operation.attributes
        return map_of(given[VISIBLE]) if VISIBLE in given else None

    @cached_property
    def hidden(self) -> float | None:
        """The logits of hidden keys if they may have weights after all."""
        given = self.program.steps.operation.attributes
        return ir.FloatAttr(given[HIDDEN]).value if HIDDEN in given else None

    def initialize(self) -> None:
        """Make the mbarrier, and clear the words; one thread executes it."""
        if self.hidden is not None:
            MbarrierInitOp.create([self.memory], attributes={"count": self._warps})
            for warp in range(self._warps):
                store(i32(0), offset(self.memory, 2 * _BARRIER + warp * _WORD), _WORD)

    def note(self, tile: ChainTile, is_low: ir.Value) -> None:
        """Have the block compute its tiles again if a lane of this warp says so in the first round."""
        word = ir.arith.extui(ir.IntegerType.get_signless(32), is_low)
        distance = WARP_SIZE // 2
        while distance:
            (other,) = ShuffleOp.build(ir.arith.xori(self.place.lane, create_index(distance)), [word])
            word, distance = ir.arith.ori(word, other), distance // 2
        is_any = ir.arith.cmpi(ir.arith.CmpIPredicate.ne, word, i32(0))
        is_first = ir.arith.andi(equal(tile.round, 0), equal(self.place.lane, 0))
        with only_if(ir.arith.andi(is_first, is_any)):
            own = ir.arith.muli(as_i32(self.place.warp), i32(_WORD))
            store(i32(1), offset(offset(self.memory, 2 * _BARRIER), own), _WORD)

    @contextmanager
    def tiles(self, inits: Sequence[ir.Value], multiplies: bool) -> Iterator[ChainTile]:
        """Write the loops; the role of those that multiply is the one that says whether there is a second round."""
        batch, rows, _ = self.program.blocks.grid
        if self.hidden is None:
            with self._tiles(create_index(0), batch * rows, inits) as tile:
                yield tile
            return
        with counted(create_index(0), create_index(2), create_index(1), inits) as rounds:
            op, again, first = create_if(equal(rounds.counter, 1), [ir.IndexType.get()])
            with ir.InsertionPoint(again):
                if multiplies:
                    with only_if(equal(self.place.lane, 0)):
                        MbarrierArriveOp.create([self.memory])
                MbarrierWaitOp.create([self.memory, i32(0)])
                ir.scf.yield_([ir.arith.select(self._is_all_seen(), create_index(0), create_index(1))])
            with ir.InsertionPoint(first):
                ir.scf.yield_([create_index(1)])
            (count,) = op.results
            with counted(create_index(0), count, create_index(1), rounds.carried) as once:
                with self._tiles(rounds.counter, batch * rows, once.carried) as tile:
                    yield tile
                once.carried = tile.carried
            rounds.carried = once.results

    def _is_all_seen(self) -> ir.Value:
        """Return whether no warp has noted anything."""
        words = [
            load(offset(self.memory, 2 * _BARRIER + warp * _WORD), ir.IntegerType.get_signless(32), _WORD)
            for warp in range(self._warps)
        ]
        total = words[0]
        for word in words[1:]:
            total = ir.arith.ori(total, word)
        return ir.arith.cmpi(ir.arith.CmpIPredicate.eq, total, i32(0))

    @contextmanager
    def _tiles(self, round_: ir.Value, count: int, inits: Sequence[ir.Value]) -> Iterator[ChainTile]:
        """Write the loops over the tiles of a round; afterwards the tile has what the last one has carried."""
        step = create_index(self.program.schedule.blocks)
        if self.visible is None:
            with counted(self.place.block, create_index(count), step, inits) as loop:
                tile = self._tile(round_, self._numbers(loop.counter, None), loop)
                yield tile
                loop.carried = tile.carried
            tile.carried = loop.results
            return
        batch, rows, _ = self.program.blocks.grid
        pairs = -(-rows // 2)
        with counted(self.place.block, create_index(batch * pairs), step, inits) as loop:
            both = ir.arith.select(self._is_middle(loop.counter), create_index(1), create_index(2))
            with counted(create_index(0), both, create_index(1), loop.carried) as inner:
                tile = self._tile(round_, self._numbers(loop.counter, inner.counter), inner)
                yield tile
                inner.carried = tile.carried
            loop.carried = inner.results
        tile.carried = loop.results

    def _is_middle(self, pair: ir.Value) -> ir.Value:
        """Return whether a pair is the tile in the middle alone."""
        rows = self.program.blocks.grid[1]
        position = self._apply([dim(0) % -(-rows // 2)], pair)[0]
        return equal(position, rows // 2 if rows % 2 else rows)

    def _numbers(self, number: ir.Value, half: ir.Value | None) -> Values:
        """Return the numbers in the grid of a tile, or of one of a pair."""
        rows = self.program.blocks.grid[1]
        if half is None:
            matrix, row = self._apply([dim(0) // rows, dim(0) % rows], number)
            return [matrix, row, create_index(0)]
        pairs = -(-rows // 2)
        matrix, near, far = self._apply([dim(0) // pairs, dim(0) % pairs, (rows - 1) - dim(0) % pairs], number)
        return [matrix, ir.arith.select(equal(half, 0), far, near), create_index(0)]

    def _apply(self, results: Sequence[AffineExpr], number: ir.Value) -> Values:
        batch, rows, _ = self.program.blocks.grid
        map_ = IndexingMap(ranges((batch * rows,)), (), tuple(results))
        return ApplyIndexingOp.build(map_.with_simple_results(), [number])

    def _limits(self, at: Values) -> Values:
        """Compute the numbers that visible steps depend on, of a tile."""
        assert self.visible is not None
        code, found = FragmentCode(at, [], {}, IndexingMap((), (), ())), []
        for value, clamp in zip(self.program.steps.limits, self.visible.dims[len(at) :], strict=True):
            number = clamped(code.value(value), dtype_of(value), clamp.upper)
            found.append(ir.arith.index_cast(ir.IndexType.get(), number))
        return found

    def _tile(self, round_: ir.Value, at: Values, loop: WrittenLoop) -> ChainTile:
        count = create_index(self.program.steps.count)
        first, end = create_index(0), count
        if self.visible is not None:
            given_first, given_end, *others = ApplyIndexingOp.build(self.visible, [*at, *self._limits(at)])
            for other in others:
                given_end = ir.arith.minsi(given_end, other)
            # There is a step in any case.
            most = ir.arith.minsi(ir.arith.maxsi(given_first, first), create_index(self.program.steps.count - 1))
            least = ir.arith.maxsi(ir.arith.minsi(given_end, count), ir.arith.addi(most, create_index(1)))
            if self.hidden is None:
                first, end = most, least
            else:
                is_first = equal(round_, 0)
                first = ir.arith.select(is_first, most, first)
                end = ir.arith.select(is_first, least, end)
        return ChainTile(at, round_, first, end, loop.carried)


def steps_of(tile: ChainTile, inits: Sequence[ir.Value]) -> AbstractContextManager[WrittenLoop]:
    """Write the loop over the steps of a tile."""
    return counted(tile.first, tile.end, create_index(1), inits)
