"""The frequency of reads: how often an operation reads an operand for each of its own elements."""

import itertools
import math
from collections.abc import Mapping, Sequence

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.placement import Reads
from xgpu.costs.footprint import footprint
from xgpu.costs.registers import MOST_ACCUMULATORS
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.affine import AffineExpr, Dim, Mod, Symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import dtype_of, is_argument, producer, users_of
from xgpu.target_machine import WARP_SIZE

_RUN = 8
"""Neighbouring elements of a result for which a thread computes a common value once."""

type Loops = Mapping[int, int]
"""The loops of a thread in which a value is computed: the dimensions of its indices that they count, and how far."""

_AS_IN_MEMORY = ("stablehlo.convert", "stablehlo.slice", "stablehlo.reshape", "stablehlo.dynamic_slice")
_VECTOR_BITS = 128
"""Bits of an array that a thread reads at once."""

_LOOPING = ("reduce", "contract")
"""Kinds of operations that read in a loop."""

_SPAN = 4 * WARP_SIZE
"""Neighbouring elements of a result that a warp computes, of 32 bits."""


@dataclass(frozen=True)
class Repeat:
    """The frequency of a read: ``factor`` times for each evaluation of its operation, and ``least`` times at least.

    In a subgraph that others call it is ``called_factor`` times, as neighbours call it at indices of their own. Both
    are of a thread that computes for ``shared`` neighbours once what they have in common.
    """

    factor: float
    called_factor: float
    least: int
    shared: int

    @classmethod
    def of(cls, reads: Reads, position: int, map_: IndexingMap | None = None) -> "Repeat":
        """Return the count of an access, at the indices of ``map_`` if it is given: its map with other ranges.

        Where an access happens at some indices only, these are taken to be as frequent as all others; where they
        alternate within a warp, it is as if all lanes read: a warp goes through what any of them does.
        """
        map_ = map_ or reads.maps[position]
        factor = called = float(math.prod(interval.size for interval in map_.symbols))
        for expression, interval in map_.constraints:
            possible = expression.interval(map_.dims, map_.symbols)
            share = possible.intersect(interval).size / max(1, possible.size)
            count, apart = _alternating(expression, map_.dims)
            if not 1 < count * apart <= _SPAN:
                factor *= share
                called *= share
            elif isinstance(atom := expression.terms[0][0], Dim) and apart < _RUN:
                # The elements of a thread differ by this dimension, which is a constant for each of them.
                factor *= share
                called *= 1 if _is_merged(reads.op, atom.index) else share
        # Not the indices of gathers: chains of them execute four times the operations that would be counted.
        alike = _neighbours_alike(map_) if reads.kind == "indexing" and len(reads.accesses) == 1 else 1
        shared = _shared_by_neighbours(alike)
        if shared == _RUN:
            shared = min(shared, _columns_of_thread(reads.op))
        return cls(factor / shared, called / shared, footprint(map_) if alike > 1 else 0, shared)

    def times(self, computed: float, is_called: bool, in_loop: int = 1) -> float:
        """Return how often the read happens if its operation is computed so often, in a subgraph that others call.

        Of these times ``in_loop`` in turn are those of a thread's loop that all read the same.
        """
        computed *= min(1.0, self.shared / in_loop)
        return max((self.called_factor if is_called else self.factor) * computed, self.least)


def loops_inside(reads: Reads, position: int, outside: Loops) -> Loops:
    """Return the loops of a thread at which an access reads, of an operation that is computed inside of others."""
    map_, found = reads.maps[position], {}
    opens = reads.deferred[position] and reads.kind in _LOOPING
    for number, result in enumerate(map_.results):
        match result.terms:
            case ((Symbol() as atom, 1),) if opens and not result.constant:
                found[number] = map_.symbols[atom.index].size
            case ((Dim() as atom, 1),) if not result.constant and atom.index in outside:
                found[number] = outside[atom.index]
    return found


def times_alike(reads: Reads, position: int, loops: Loops) -> int:
    """Return how many times in turn an access reads the same, in the loops in which its operation is computed.

    Before code is generated, what does not depend on a loop is moved out of it.
    """
    if not loops or reads.kind != "indexing" or len(reads.accesses) > 1:
        return 1
    used = set[int]().union(*(result.variables()[0] for result in reads.maps[position].results))
    return math.prod(size for dim, size in loops.items() if dim not in used)


def _is_merged(op: ir.Operation, dimension: int) -> bool:
    """Whether reshapes merge a dimension of the result of ``op`` with others: what reads it alternates along that."""
    shape = shape_of(op.results[0])
    before = math.prod(shape[:dimension])
    for user in users_of(op.results[0]):
        if is_bitcast(user):
            merged = shape_of(user.results[0])
            sizes = {(math.prod(merged[:number]), size) for number, size in enumerate(merged)}
            if (before, shape[dimension]) not in sizes:
                return True
    return False


def _alternating(expression: AffineExpr, dims: Sequence[Interval]) -> tuple[int, int]:
    """Return how many values a dimension or a remainder takes in turn, and for how many elements each; 0 if neither."""
    inner, _ = expression.variables()
    apart = math.prod(max(1, each.size) for each in dims[max(inner, default=0) + 1 :])
    match expression.terms:
        case ((Mod() as atom, 1),) if not expression.constant:
            return atom.divisor, apart
        case ((Dim() as atom, 1),):
            return dims[atom.index].size, apart
    return 0, 0


def _shared_by_neighbours(alike: int) -> int:
    """Return how many of so many neighbours that need a common value a thread computes it for once.

    Runs shorter than a warp are neither elements of a vector nor steps of a thread's loop, but for their powers of two.
    """
    return _RUN if alike >= WARP_SIZE else math.gcd(alike, _RUN)


def _columns_of_thread(op: ir.Operation) -> int:
    """Return how many neighbouring elements of the result of ``op`` a thread computes.

    If they are taken in by sums of columns, it has few of these columns: an access of each array, and fewer where more
    sums read the same array, as products by few rows do.
    """
    fewest = _RUN
    for user in users_of(op.results[0]):
        if len(user.operands) == 2 and user.results and _is_reduced_by_columns(user):
            for other in user.operands:
                if other != op.results[0]:
                    sums, bits = _readers_and_bits(other)
                    fewest = min(fewest, max(1, MOST_ACCUMULATORS // sums), max(1, _VECTOR_BITS // bits))
    return 1 << (fewest.bit_length() - 1)


def _is_reduced_by_columns(op: ir.Operation) -> bool:
    """Whether the only reader of ``op``, maybe of a reshape of it, reduces along other dimensions than the last."""
    for _ in range(2):
        match users_of(op.results[0]):
            case [reader] if reader.name == "stablehlo.reduce":
                return len(shape_of(reader.operands[0])) - 1 not in integers(reader, "dimensions")
            case [reader] if reader.name == "stablehlo.reshape":
                op = reader
            case _:
                break
    return False


def _readers_and_bits(value: ir.Value) -> tuple[int, int]:
    """Return how many operations read an array, however it is converted for each, and the bits of its elements.

    The bits are those in memory, of an array of which it is perhaps a part.
    """
    readers = _readers(value)
    while not is_argument(value) and (op := producer(value)).name in _AS_IN_MEMORY:
        value = op.operands[0]
        if op.name == "stablehlo.convert":
            readers = max(readers, _readers(value))
    return readers, max(1, dtype_of(value).storage_bits)


def _readers(value: ir.Value) -> int:
    """Return how many operations read an array: as many as sums of a thread count, at most."""
    return sum(1 for _ in itertools.islice(value.uses, MOST_ACCUMULATORS))


def _neighbours_alike(map_: IndexingMap) -> int:
    """Return how many neighbours in the dimensions of a map have the same results."""
    used = set[int]().union(*(expr.variables()[0] for expr in map_.results))
    return math.prod(max(1, interval.size) for interval in map_.dims[max(used, default=-1) + 1 :])
