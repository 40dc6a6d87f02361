"""The division of a tile's elements among a block's threads: in units, neighbours along one dimension."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xgpu import ir
from xgpu.dialects.xgpu import LoopOp, YieldOp
from xgpu.indexing.access import Shape
from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.products.fragments import THREAD, Indices
from xgpu.records import dataclass


@dataclass(frozen=True)
class Units:
    """Units of ``lanes`` elements along the first dimension of ``order``; one follows the other in that order.

    ``order`` names all dimensions of ``shape``, the fastest one first. A tile without dimensions is one unit.
    """

    shape: Shape
    order: tuple[int, ...]
    lanes: int

    @property
    def count(self) -> int:
        """The number of units."""
        return math.prod(self.shape) // self.lanes

    def indices(self, number: AffineExpr) -> Indices:
        """Return the indices of the elements of a unit, which depend on the lane."""
        if not self.shape:
            return ()
        sizes = [self.shape[each] for each in self.order]
        sizes[0] //= self.lanes
        parts = dict(zip(reversed(self.order), delinearize(number, sizes[::-1]), strict=True))
        first = self.order[0]
        parts[first] = parts[first] * self.lanes + (symbol(0) if self.lanes > 1 else constant(0))
        return tuple(parts[each] for each in range(len(self.shape)))

    @contextmanager
    def shared_by(self, space: AddressSpace, threads: int) -> Iterator[tuple[AddressSpace, Indices]]:
        """Write a loop over a thread's units; its body has the space and the indices of the elements of one."""
        passes = Interval(0, -(-self.count // threads) - 1)
        number = THREAD + symbol(0) * threads
        bounds = () if self.count % threads == 0 else ((number, Interval(0, self.count - 1)),)
        map_ = IndexingMap(space.ranges[:1], (passes,), (), bounds)
        loop = LoopOp.build(map_, [space.values[0]], [])
        with ir.InsertionPoint(loop.body):
            inner = space.extended([passes], loop.symbol_arguments).with_lanes(self.lanes)
            yield inner, self.indices(THREAD + dim(len(space.ranges)) * threads)
            YieldOp.build([])

    def tried(self, space: AddressSpace, threads: int) -> tuple[AddressSpace, Indices]:
        """Return the space and the indices as in the loop, to ask what accesses are like: nothing is written."""
        passes = Interval(0, -(-self.count // threads) - 1)
        return AddressSpace((*space.ranges, passes), space.values, self.lanes), self.indices(
            THREAD + dim(len(space.ranges)) * threads
        )


def by_strides(shape: Shape, strides: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions in the order of their strides; those of a single index come last."""
    return tuple(sorted(range(len(shape)), key=lambda each: (shape[each] == 1, strides[each], -each)))


def widest(size: int, most: int) -> int:
    """Return the greatest power of two up to ``most`` that divides a size."""
    return math.gcd(size, 1 << (most.bit_length() - 1))
