"""Scans as heroes of kernels: those of one kernel have one shape, and lie along rows or across them."""

import math
from collections.abc import Hashable

from xgpu import ir
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.scan_shape import ScanShape
from xgpu.fusion.grouping.families import Heroes
from xgpu.hlo.scan_op import SCAN
from xgpu.indexing.access import dims, identity_map, ranges, shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.target_machine import WARP_SIZE


def scans_along(what: str, is_rows: bool) -> Heroes:
    """Return the heroes of kernels of scans of rows, or of columns, which ``what`` says."""

    def key(op: ir.Operation) -> Hashable | None:
        if op.name != SCAN or any(map(is_packed, op.results)) or not math.prod(shape_of(op.results[0])):
            return None
        shape = ScanShape.of(op)
        return shape if shape.is_rows == is_rows else None

    return Heroes(f"scans of one shape, of {what}", key, (SCAN,))


def walk_of_scan(op: ir.Operation) -> IndexingMap:
    """Return the order in which blocks go over the elements of a scan: by rows, or down a warp's columns."""
    shape = ScanShape.of(op)
    if shape.is_rows:
        return identity_map(shape.shape)
    lanes = min(shape.inner, WARP_SIZE)
    outer, warp, index, lane = dims(4)
    inner = warp * lanes + lane
    walked = ranges((shape.outer, -(-shape.inner // lanes), shape.size, lanes))
    return IndexingMap(walked, (), shape.indices(outer, index, inner)).with_constraint(
        inner, Interval(0, shape.inner - 1)
    )
