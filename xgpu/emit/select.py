"""The one table that chooses the emitter of a fusion."""

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.emit.base import Emitter, Fusion
from xgpu.emit.concatenate import ConcatenateEmitter
from xgpu.emit.concatenate_tiled import TiledConcatenateEmitter
from xgpu.emit.input_slices import InputSlicesEmitter
from xgpu.emit.loop import LoopEmitter
from xgpu.emit.recurrence import RecurrenceEmitter
from xgpu.emit.reduce_column import ColumnReductionEmitter
from xgpu.emit.reduce_row import RowReductionEmitter
from xgpu.emit.rows import RowsEmitter
from xgpu.emit.scan_column import ColumnScanEmitter
from xgpu.emit.scan_row import RowScanEmitter
from xgpu.emit.scatter import OrderedScatterEmitter, ScatterEmitter
from xgpu.emit.scatter_sorted import SortedScatterEmitter
from xgpu.emit.transpose import TransposeEmitter
from xgpu.emit.update_slice import UpdateSliceEmitter
from xgpu.errors import InvalidInput, Unsupported

POINTER_BYTES = 8
EMITTERS: dict[str, type[Emitter]] = {
    each.NAME: each
    for each in (
        LoopEmitter,
        ConcatenateEmitter,
        TiledConcatenateEmitter,
        InputSlicesEmitter,
        TransposeEmitter,
        ScatterEmitter,
        SortedScatterEmitter,
        OrderedScatterEmitter,
        UpdateSliceEmitter,
        RowReductionEmitter,
        RowsEmitter,
        ColumnReductionEmitter,
        RowScanEmitter,
        ColumnScanEmitter,
        RecurrenceEmitter,
    )
}
"""Every emitter by name."""


def emit_kernel(fusion: Fusion, emitter: str) -> ir.Module:
    """Return a new module of level ``emitted`` with the kernel of ``fusion``, in the fusion's context.

    Raises `Unsupported` if an operation has no scalar code, and if there are more arrays than a launch takes.
    """
    if emitter not in EMITTERS:
        raise InvalidInput(f"unknown emitter '{emitter}' of fusion @{fusion.name}; there are {', '.join(EMITTERS)}")
    arrays = len(fusion.body.arguments) + len(fusion.results)
    if arrays * POINTER_BYTES > fusion.device.parameter_bytes:
        most = fusion.device.parameter_bytes // POINTER_BYTES
        raise Unsupported(f"a kernel reads and writes {arrays} arrays, of which a launch takes {most} at most")
    with fusion.body.owner.context, ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes[attributes.LEVEL] = ir.StringAttr.get("emitted")
        with ir.InsertionPoint(module.body):
            EMITTERS[emitter](fusion).emit()
    return module
