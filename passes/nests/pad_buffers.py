"""The pass `pad-buffers`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.nests.loops import LaunchOp, NewOp, ParOp
from xgpu.indexing.affine import AffineExpr, constant, linearize
from xgpu.indexing.bank_conflicts import bank_conflicts
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.structure import PAR, BufferAccess, accesses_in, ancestors, band_at, launches_of
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk

PADS = (0, 1, 2, 4, 8)
"""Elements after each row to choose from."""
_SHARED = "shared"
_MOST_STEPS = 64


@dataclass(frozen=True)
class PadBuffers(Pass):
    """Chooses the padding of the rows of buffers in shared memory.

    It is the least padding that leaves the fewest bank conflicts over all accesses of the threads' loops. A program may
    give it (``#pad(n)``).
    Needs map-threads and place-buffers.

    ```mlir
    %tile = "xgpu.new"() {called = "tile", memory = "shared"} : () -> memref<32x32xf32>
    // becomes
    %tile = "xgpu.new"() {called = "tile", memory = "shared", pad = 1 : i64} : () -> memref<32x32xf32>
    ```
    """

    NAME: ClassVar[str] = "pad-buffers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((NewOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the pads of every kernel's buffers."""
        for launch in launches_of(module):
            for op in walk(launch.operation, NewOp.OPERATION_NAME):
                new = cast(NewOp, op.opview)
                if new.memory == _SHARED and new.pad is None and ir.MemRefType(new.buffer.type).rank > 1:
                    pad = _best_pad(_addresses(launch, new.buffer))
                    op.attributes["pad"] = attributes.int_attribute(pad)


@dataclass(frozen=True)
class _Indexed:
    """An access of a thread's loops: from the thread and its steps to the indices of the element."""

    map: IndexingMap
    shape: tuple[int, ...]
    bytes: int

    def conflicts(self, pad: int) -> int:
        """Return the extra wavefronts of the access, if rows are longer by ``pad``."""
        shape = (*self.shape[:-1], self.shape[-1] + pad)
        return bank_conflicts(replace(self.map, results=(linearize(list(self.map.results), shape),)), self.bytes)


def _best_pad(addresses: Sequence[_Indexed]) -> int:
    return min(PADS, key=lambda pad: (sum(each.conflicts(pad) for each in addresses), pad))


def _addresses(launch: LaunchOp, buffer: ir.Value) -> list[_Indexed]:
    """Return the accesses to a buffer by threads; variables of other loops are at 0."""
    found = []
    for access in accesses_in(launch.operation):
        if access.buffer != buffer:
            continue
        band = next((op for op in ancestors(access.op) if op.name == PAR and "map" in op.attributes), None)
        if band is not None and cast(ParOp, band.opview).band == "thread":
            found.append(_indexed(access, band))
    return found


def _indexed(access: BufferAccess, par: ir.Operation) -> _Indexed:
    map_ = cast(IndexingMap, cast(ParOp, par.opview).map)
    members = {loop.variable: result for loop, result in zip(band_at(par), map_.results, strict=True)}
    values: list[AffineExpr] = [members.get(variable, constant(0)) for variable in access.variables]
    results = tuple(result.substitute(values) for result in access.map.results)
    # A step of a thread is as good as another.
    symbols = tuple(each if each.size <= _MOST_STEPS else Interval(0, 0) for each in map_.symbols)
    return _Indexed(IndexingMap(map_.dims, symbols, results), access.shape, max(1, access.dtype.storage_bits // 8))
