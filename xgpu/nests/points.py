"""The elements of accesses, for values of loops' variables: arrays of them, to enumerate all at once."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.indexing.affine import AffineExpr, Dim, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.nests.structure import BufferAccess

type Values = Mapping[ir.Value, Any]
"""Numbers, or arrays of one shape, for variables."""


def variables_of(access: BufferAccess) -> tuple[ir.Value, ...]:
    """Return the variables that say which element an access accesses, and whether it does."""
    guarding = (variable for guard in access.guards for variable in guard.variables)
    return tuple(dict.fromkeys((*access.variables, *guarding)))


def position(access: BufferAccess, values: Values) -> Any:
    """Return the position of the element, counted in elements of the buffer."""
    return access.position.evaluate([values[variable] for variable in access.variables])


def is_made(access: BufferAccess, values: Values, unknown: Collection[ir.Value] = ()) -> Any:
    """Return whether the access is made: where its map is defined, and its conditions hold.

    Those on variables that are ``unknown`` are taken to hold.
    """
    map_, variables = _of_known(access.map, access.variables, unknown)
    inside = holds(map_, [values[variable] for variable in variables])
    for guard in access.guards:
        if any(variable in unknown for variable in guard.variables):
            continue
        holding = holds(guard.map, [values[variable] for variable in guard.variables])
        inside = inside & (holding if guard.holds else ~np.asarray(holding, bool))
    return inside


def _of_known(
    map_: IndexingMap, variables: Sequence[ir.Value], unknown: Collection[ir.Value]
) -> tuple[IndexingMap, list[ir.Value]]:
    """Return a map's domain without what is said of unknown variables, which may be anything."""
    if not any(variable in unknown for variable in variables):
        return map_, list(variables)
    kept = [number for number, variable in enumerate(variables) if variable not in unknown]
    tested = tuple(each for each in map_.constraints if each[0].variables()[0] <= set(kept))
    places = {number: dim(place) for place, number in enumerate(kept)}
    constraints = tuple((expr.substitute(places), interval) for expr, interval in tested)
    domain = IndexingMap(tuple(map_.dims[number] for number in kept), (), (), constraints)
    return domain, [variables[number] for number in kept]


def holds(map_: IndexingMap, dims: list[Any], symbols: list[Any] | None = None) -> Any:
    """Return where variables are in a map's domain."""
    inside: Any = True
    for value, interval in zip((*dims, *(symbols or [])), (*map_.dims, *map_.symbols), strict=True):
        inside = inside & (value >= interval.lower) & (value <= interval.upper)
    for expr, interval in map_.constraints:
        value = expr.evaluate(dims, symbols or [])
        inside = inside & (value >= interval.lower) & (value <= interval.upper)
    return inside


def offset(access: BufferAccess, variable: ir.Value, if_made: bool = False) -> int | None:
    """Return by how much a variable moves the element of an access each time; None if that is not all that it does.

    ``if_made``: it may decide whether the access is made, too.
    """
    if not if_made and any(variable in guard.variables for guard in access.guards):
        return None
    if variable not in access.variables:
        return 0
    number = access.variables.index(variable)
    tested = any(number in expr.variables()[0] for expr, _ in access.map.constraints) or access.map.dims[number].lower
    if tested and not if_made:
        return None
    found = 0
    for atom, factor in access.position.terms:
        if isinstance(atom, Dim) and atom.index == number:
            found = factor
        elif number in AffineExpr(((atom, 1),), 0).variables()[0]:
            return None
    return found
