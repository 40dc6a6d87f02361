"""Source locations of operations, from their MLIR locations, and errors that name them."""

from pathlib import Path
from typing import Any, cast

import xgpu
from xgpu import ir
from xgpu.errors import SourceLocation, Unsupported

_OWN_FOLDER = str(Path(xgpu.__file__).parent)
# Locations nest as deep as the user's call stack does; deeper than this only machine-made text goes.
_MAX_LOCATIONS = 10_000
_NUMBERS = 1 << 32
"""Lines and columns that MLIR can tell apart; the bindings give the upper half of them as numbers below zero."""


def source_of(where: ir.Location | ir.Operation | ir.OpView | ir.Value[Any]) -> SourceLocation | None:
    """Return the innermost frame of the user's source behind a location, operation or value, or None.

    A call-site location is read callee first, since the callee is the inner frame; a fused location in its order; a
    name location through its child. Frames inside xgpu itself are passed over.
    """
    # JAX names each frame and counts its columns from 0; the MLIR parser counts from 1 and names nothing.
    pending = [(_location_of(where), "")]
    for _ in range(_MAX_LOCATIONS):
        if not pending:
            return None
        location, name = pending.pop()
        if isinstance(location, ir.FileLineColLoc):
            if location.start_line and not location.filename.startswith(_OWN_FOLDER):
                column = location.start_col % _NUMBERS + bool(name)
                return SourceLocation(location.filename, location.start_line % _NUMBERS, column, name)
        elif isinstance(location, ir.NameLoc):
            pending.append((location.child_loc, location.name_str))
        elif isinstance(location, ir.CallSiteLoc):
            pending += ((location.caller, name), (location.callee, name))
        elif isinstance(location, ir.FusedLoc):
            pending += ((cast(ir.Location, child), name) for child in reversed(location.locations))
    return None


def name_of(where: ir.Location | ir.Operation | ir.OpView | ir.Value[Any]) -> str | None:
    """Return the name that a location starts with (JAX and HLO text name arguments and instructions so), or None."""
    location = _location_of(where)
    return (location.name_str or None) if isinstance(location, ir.NameLoc) else None


def unsupported(op: ir.Operation | ir.OpView, reason: str) -> Unsupported:
    """Return the error for an operation that xgpu cannot compile, with its type and the user's source line."""
    operation = op.operation
    types = ", ".join(str(result.type) for result in operation.results)
    source = source_of(operation)
    name = name_of(operation)
    # What XLA imported may have names and no lines; a name finds the place as well.
    instruction = f" ('{name}')" if source is None and name else ""
    of_type = f" of type {types}" if types else ""
    return Unsupported(f"{operation.name}{instruction}{of_type}: {reason}", source)


def _location_of(where: ir.Location | ir.Operation | ir.OpView | ir.Value[Any]) -> ir.Location:
    location = where if isinstance(where, ir.Location) else where.location
    # Diagnostics carry locations of the base class; a round trip through the attribute gives the real one.
    return ir.Location.from_attr(location.attr, location.context) if type(location) is ir.Location else location
