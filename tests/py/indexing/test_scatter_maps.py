"""The maps of a scatter, by brute force: made one by one where they say, the updates give what StableHLO says."""

import random
from math import prod
from operator import mul

import numpy as np
import pytest
from hypothesis import given

from tests.py.indexing.hlo_programs import build, check, type_of
from tests.py.indexing.indexing_strategies import decisions, thousands
from tests.py.indexing.scatter_cases import Case
from xgpu.indexing.scatter_maps import scatter_maps


def scattered(op, operands, shape):
    """The result by the maps."""
    operand, indices, updates = operands
    maps, result = scatter_maps(op), operand.copy()
    for start in ([0] * len(maps.bounds), maps.bounds):
        check_places(maps, [maps.operand.evaluate([*at, *start]) for at in np.ndindex(*updates.shape)])
    order = [i for i in range(updates.ndim) if i not in maps.window_dims]
    for at in sorted(np.ndindex(*updates.shape), key=lambda at: [at[i] for i in order]):
        start = [int(indices[component.evaluate(at)]) for component in maps.components]
        if all(0 <= index <= bound for index, bound in zip(start, maps.bounds, strict=True)):
            place = maps.operand.evaluate([*at, *start])
            result[place] = 2 * result[place] + updates[at]
    return result


def check_places(maps, places):
    """Check what the maps say of where updates lie, given the place of each for some start of the windows."""
    # Updates that differ in a separate dimension differ in their place.
    known = {}
    for at, place in zip(np.ndindex(*maps.update_shape), places, strict=True):
        key = tuple(at[i] for i in maps.separate_dims)
        assert known.setdefault(place, key) == key
    # Runs of contiguous updates lie side by side, at a multiple of as many elements.
    strides = [prod(maps.operand_shape[i + 1 :]) for i in range(len(maps.operand_shape))]
    linear = [sum(map(mul, place, strides)) for place in places]
    length = maps.contiguous
    assert len(linear) % length == 0
    for first in range(0, len(linear), length):
        assert linear[first] % length == 0
        assert linear[first : first + length] == list(range(linear[first], linear[first] + length))


@thousands
@given(decisions)
def test_scatter(rng):
    case = Case(rng)
    # XLA makes invalid code of a scatter without index components.
    operands = [case.operand, case.indices, case.updates]
    check(case.text, operands, case.shape, scattered, case.expected(), xla=bool(case.targets))


@pytest.mark.parametrize(
    ("shape", "numbers", "indices", "updates", "expected"),
    [
        # Rows; rows of which a part is updated; elements; a whole array of one place; batches of rows.
        (
            (8, 6),
            "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
            1,
            (5, 6),
            6,
        ),
        (
            (8, 6),
            "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
            1,
            (5, 4),
            1,
        ),
        ((8,), "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]", 1, (5,), 1),
        ((8, 6), "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0]", 1, (5, 8, 6), 48),
    ],
)
def test_contiguous_of(shape, numbers, indices, updates, expected):
    assert _maps_of(_with_numbers(numbers), shape, (5, indices), updates).contiguous == expected


def _maps_of(text, shape, indices, updates):
    module, op = build(text, [type_of(shape), type_of(indices), type_of(updates)], type_of(shape))
    maps = scatter_maps(op)
    del module
    return maps


def _with_numbers(numbers):
    text = Case(random.Random(0)).text
    start, end = text.index("#stablehlo"), text.index("}> (")
    return f"{text[:start]}#stablehlo.scatter<{numbers}, index_vector_dim = 1>{text[end:]}"
