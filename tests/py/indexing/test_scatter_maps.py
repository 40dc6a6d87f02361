"""The maps of a scatter, by brute force: made one by one where they say, the updates give what StableHLO says."""

import random
from math import prod
from operator import mul

import numpy as np
import pytest
from hypothesis import given

from tests.py.indexing.hlo_programs import build, check, type_of
from tests.py.indexing.indexing_strategies import decisions, hundreds
from tests.py.indexing.scatter_cases import Case
from xgpu.indexing.scatter_maps import scatter_maps


def scattered(op, operands, shape):
    """The result by the maps."""
    operand, indices, updates = operands
    maps, result = scatter_maps(op), operand.flatten()
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
    at = list(np.indices(updates.shape).reshape(updates.ndim, updates.size))

    def places(starts):
        found = [expr.evaluate([*at, *starts], []) for expr in maps.operand.results]
        return np.broadcast_to(sum(map(mul, found, strides)), updates.size)

    for starts in ([0] * len(maps.bounds), maps.bounds):
        check_places(maps, places(starts), at)
    starts, inside = [], np.ones(updates.size, bool)
    for component, bound in zip(maps.components, maps.bounds, strict=True):
        read = indices[tuple(expr.evaluate(at, []) for expr in component.results)]
        # In Python's integers, since some do not fit into those of NumPy.
        start = np.array([int(index) for index in np.broadcast_to(read, updates.size)], object)
        inside &= (start >= 0) & (start <= bound)
        starts.append(np.where(inside, start, 0).astype(np.int64))
    window = np.zeros(updates.size, np.int64)
    for i, size in enumerate(updates.shape):
        if i not in maps.window_dims:
            window = window * size + at[i]
    values, targets = updates.ravel(), places(starts)
    for number in np.argsort(window, kind="stable"):
        if inside[number]:
            result[targets[number]] = 2 * result[targets[number]] + values[number]
    return result.reshape(shape)


def check_places(maps, linear, at):
    """Check what the maps say of where updates lie, given the place of each for some start of the windows."""
    # Updates that differ in a separate dimension differ in their place.
    keys = [tuple(int(at[i][number]) for i in maps.separate_dims) for number in range(len(linear))]
    known = {}
    assert all(known.setdefault(int(place), key) == key for place, key in zip(linear, keys, strict=True))
    # Runs of contiguous updates lie side by side, at a multiple of as many elements.
    runs = linear.reshape(-1, maps.contiguous)
    assert (runs[:, 0] % maps.contiguous == 0).all()
    assert (runs == runs[:, :1] + np.arange(maps.contiguous)).all()


@hundreds
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
