"""Whether blocks write each element of the outputs once."""

from collections.abc import Sequence

import numpy as np

from xgpu.block_language.program import BlockProgram, NamedArrayType, TileStore
from xgpu.errors import InvalidInput
from xgpu.indexing.bijection import ENUMERATION_LIMIT
from xgpu.indexing.indexing_map import IndexingMap


def check_stores(program: BlockProgram) -> None:
    """Raise InvalidInput for an element of an output that no tile is written to, or several.

    Where the maps of tiles are too involved for reasoning, and too large to go through, nothing is said.
    """
    for number, array in enumerate(program.outputs):
        stores = [each for each in program.stores if each.output == number]
        where = f"kernel {program.name}, result '{array.name}'"
        if not stores:
            raise InvalidInput(f"{where}: nothing is stored into it", program.location)
        alone = len(stores) == 1
        problem = _problem_of_one(stores[0], array) if alone else _problem_of_several(stores, array)
        if problem:
            raise InvalidInput(f"{where}: {problem}", stores[-1].location)


def _problem_of_one(store: TileStore, array: NamedArrayType) -> str | None:
    parts = _along_dimensions(store.map, array.shape)
    if parts is not None:
        for dimension, part in enumerate(parts):
            if part.is_bijection((array.shape[dimension],)) is False:
                return _counted([part], (array.shape[dimension],), f" along dimension {dimension}")
        unused = _unused(store.map)
        return f"all blocks along dimension {unused[0]} of the grid store the same elements" if unused else None
    if store.map.is_bijection(array.shape) is False:
        return _counted([store.map], array.shape, "")
    return None


def _problem_of_several(stores: Sequence[TileStore], array: NamedArrayType) -> str | None:
    maps = [store.map for store in stores]
    if sum(each.box_size() for each in maps) <= ENUMERATION_LIMIT:
        return _counted(maps, array.shape, "")
    return None


def _counted(maps: Sequence[IndexingMap], shape: tuple[int, ...], along: str) -> str | None:
    """Return which element is written several times, or never; None if there is none."""
    if sum(each.box_size() for each in maps) > ENUMERATION_LIMIT:
        return f"tiles do not cover it once{along}"
    counts = sum(each.coverage(shape).counts for each in maps)
    for wrong, said in (
        (counts > 1, "is stored {} times, by blocks or tiles that overlap"),
        (counts < 1, "is stored by no block"),
    ):
        if np.any(wrong):
            place = tuple(int(each) for each in np.argwhere(wrong)[0])
            at = place[0] if len(place) == 1 else place
            return f"element {at}{along} {said.format(int(np.asarray(counts)[place]))}"
    return None


def _along_dimensions(map_: IndexingMap, shape: Sequence[int]) -> list[IndexingMap] | None:
    """Return a map for each dimension, of the variables that it depends on; None if dimensions share some."""
    used = [each.variables() for each in map_.results]
    for kind in (0, 1):
        together = [variable for each in used for variable in each[kind]]
        if len(set(together)) != len(together):
            return None
    found = []
    for number, expression in enumerate(map_.results):
        own = tuple(each for each in map_.constraints if each[0] == expression)
        part = IndexingMap(map_.dims, map_.symbols, (map_.results[number],), own)
        found.append(part.remove_unused_symbols()[0].remove_unused_dims()[0])
    return found


def _unused(map_: IndexingMap) -> list[int]:
    used = {variable for each in map_.results for variable in each.variables()[0]}
    return [number for number, each in enumerate(map_.dims) if each.size > 1 and number not in used]
