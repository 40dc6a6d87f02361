"""Scans as heroes of kernels: those of one kernel have one shape, and lie along rows or across them."""

import math
from collections.abc import Hashable

from xgpu import ir
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.scan_shape import ScanShape
from xgpu.fusion.grouping.families import Heroes
from xgpu.hlo.scan_op import SCAN
from xgpu.indexing.access import shape_of


def scans_along(what: str, is_rows: bool) -> Heroes:
    """Return the heroes of kernels of scans of rows, or of columns, which ``what`` says."""

    def key(op: ir.Operation) -> Hashable | None:
        if op.name != SCAN or any(map(is_packed, op.results)) or not math.prod(shape_of(op.results[0])):
            return None
        shape = ScanShape.of(op)
        return shape if shape.is_rows == is_rows else None

    return Heroes(f"scans of one shape, of {what}", key, (SCAN,))
