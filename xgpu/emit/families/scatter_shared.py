"""The emitter of scatters with many updates of few places: each block combines its own in shared memory first.

In device memory updates of one place wait for each other, whichever block makes them. A block has a tile for all places
of each operand, begins it with the combiner's identity, updates it, and then updates the operand by its elements once.
"""

import math
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import Self

from xgpu import ir
from xgpu.analysis.combiners import Function, combiners
from xgpu.analysis.in_place import SCATTER, has_few_places, is_ordered, scatter_key
from xgpu.dtypes import DType
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.builders import apply_map, scalar_type
from xgpu.emit.families.loop import block_field, run_field
from xgpu.emit.families.scatter import ScatterEmitter, Scatters, run_of_updates
from xgpu.emit.families.update_runs import updates
from xgpu.emit.kernel_builder import entry_function, filling, loop, put, shared_tiles, when
from xgpu.emit.scalar.op import constant
from xgpu.emit.schedule import Schedule, whole_number
from xgpu.indexing.affine import delinearize, dim, linearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_THREADS = 512
_RUN = 4
"""Updates that a thread makes at a time: in shared memory, neighbours are no one request."""
_BLOCKS_PER_PROCESSOR = 2
_SMALL_TILE_BYTES = 4096
"""Bytes of a tile up to which scatters with the same indices are one kernel: a block has room for many of them."""


@dataclass(frozen=True)
class SharedScatterSchedule(Schedule):
    """The division of updates among blocks, each of which combines its own, and their threads."""

    threads: int = block_field()
    vector: int = run_field("Consecutive elements of the updates that a thread makes at a time.")
    blocks: int = whole_number("Blocks, each with a tile of its own.", most=65535)

    @classmethod
    def of(cls, facts: Scatters) -> Self:
        """As many blocks as are resident, if each has more updates to make than its tile has elements."""
        total, device = math.prod(facts.maps.update_shape), facts.fusion.device
        vector = 1 if facts.maps.window_dims else run_of_updates(facts.fusion, facts.maps, facts.heroes, _RUN)
        most = total // max(_THREADS * vector, 2 * math.prod(facts.maps.operand_shape))
        return cls(_THREADS, vector, max(1, min(_BLOCKS_PER_PROCESSOR * device.sm_count, most)))

    def problems(self, facts: Scatters) -> Iterator[str]:
        """The tiles fit into a block's memory."""
        each = sum(dtype_of(value).storage_bits // 8 for hero in facts.heroes for value in hero.results)
        most = facts.fusion.device.shared_bytes_optin
        if math.prod(facts.maps.operand_shape) * each > most:
            yield f"expected tiles of at most {most} bytes, the shared memory of a block"


class SharedScatterEmitter(ScatterEmitter):
    """Emits scatters with the same indices by way of tiles that have all their places."""

    NAME = "scatter_shared"

    @cached_property
    def _size(self) -> int:
        return math.prod(self.maps.operand_shape)

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x, however many updates there are."""
        return LaunchDimensions.along_x(self.schedule.blocks, self.schedule.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[step, element of the run] -> element of the updates; see `ScatterEmitter`."""
        launch, run, shape = self.launch_dimensions(), self.schedule.vector, self.maps.update_shape
        total, threads = math.prod(shape), self.schedule.blocks * self.schedule.threads
        element = (symbol(0) * threads + launch.thread) * run + symbol(1)
        steps = Interval(0, -(-total // (threads * run)) - 1), Interval(0, run - 1)
        inside = ((element, Interval(0, total - 1)),)
        return IndexingMap(launch.ranges, steps, delinearize(element, shape), inside).simplify()

    def own_elements(self) -> IndexingMap:
        """Return (thread, block)[step] -> element of a tile, and its indices: each block has them all."""
        element = symbol(0) * self.schedule.threads + dim(0)
        steps = (Interval(0, -(-self._size // self.schedule.threads) - 1),)
        inside = ((element, Interval(0, self._size - 1)),)
        results = (element, *delinearize(element, self.maps.operand_shape))
        return IndexingMap(self.launch_dimensions().ranges, steps, results, inside).simplify()

    def _place_in_tile(self) -> IndexingMap:
        """Return (indices of an update, its start) -> element of a tile."""
        operand = self.maps.operand
        results = (linearize(operand.results, self.maps.operand_shape),)
        return IndexingMap(operand.dims, operand.symbols, results, operand.constraints)

    def emit(self) -> None:
        """Write the entry function, then the functions of the indices and of the updates."""
        with entry_function(self.fusion, self, [self.read]) as kernel:
            results = [value for hero in self.heroes for value in hero.results]
            functions = [each.function for hero in self.heroes for each in combiners(hero)]
            dtypes = [dtype_of(value) for value in results]
            tiles = shared_tiles(self._size, [scalar_type(dtype) for dtype in dtypes])
            with filling(self.own_elements(), kernel.position, tiles) as each:
                nothing = [_identity(*each) for each in zip(functions, dtypes, strict=True)]
                put(nothing, tiles, each.result_arguments[:1])
            with filling(self.thread_to_output(0), kernel.position, tiles) as each:
                at = each.result_arguments
                starts, inside = self._starts(kernel, at)
                place = apply_map(self._place_in_tile(), [*at, *starts])
                early = None if self.maps.window_dims else self.read.updates_at(kernel, at)
                with when(inside, tiles):
                    self._update(tiles, place, early or self.read.updates_at(kernel, at))
            with loop(self.own_elements(), kernel.position, kernel.outputs) as each:
                element, *place = each.result_arguments
                self._update(kernel.outputs, place, [tile.extract([element]) for tile in tiles])


def _identity(function: Function, dtype: DType) -> ir.Value:
    """Return the number with which the function of two numbers is the other, to the last bit."""
    type_, bits = scalar_type(dtype), dtype.bits
    if dtype.is_float:
        infinity = math.inf
        return constant(type_, {"add": -0.0, "multiply": 1.0, "minimum": infinity, "maximum": -infinity}[function])
    least, largest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed else (0, 2**bits - 1)
    numbers = {"minimum": largest, "maximum": least, "and": -1 if dtype.is_signed else largest, "multiply": 1}
    return constant(type_, numbers.get(function, 0))


def _key(op: ir.Operation) -> Hashable | None:
    key = scatter_key(op)
    if key is None or is_ordered(op) or not has_few_places(op):
        return None
    tile_bytes = max(math.prod(ir.RankedTensorType(v.type).shape) * dtype_of(v).storage_bits // 8 for v in op.results)
    return key if tile_bytes <= _SMALL_TILE_BYTES else (key, op)


SHARED_SCATTERS = updates(
    "scatters with the same indices, of many updates of few places, which blocks combine first",
    SCATTER,
    _key,
    has_few_places,
    SharedScatterEmitter,
    Scatters,
    SharedScatterSchedule,
)
