"""Orders that follow through reshapes are those in which the elements are the same, and there are no others."""

import itertools
import math
import random

import numpy as np

from xgpu.indexing.reshapes import reshaped_order


def _factors(rng: random.Random, total: int) -> list[int]:
    """Return sizes of dimensions with so many elements, some of them of one element."""
    found: list[int] = []
    while total > 1:
        size = rng.choice([each for each in range(2, total + 1) if total % each == 0])
        found.append(size)
        total //= size
    for _ in range(rng.randint(0, 2)):
        found.insert(rng.randint(0, len(found)), 1)
    return found


def test_elements_are_in_the_same_places() -> None:
    rng = random.Random(0)
    follow = 0
    for _ in range(3000):
        shape = [rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(1, 4))]
        result = _factors(rng, math.prod(shape))
        order = tuple(rng.sample(range(len(shape)), len(shape)))
        array = np.arange(math.prod(shape)).reshape(shape)
        elements, reshaped = array.transpose(order).ravel(), array.reshape(result)
        found = reshaped_order(order, shape, result)
        if found is not None:
            follow += 1
            assert (reshaped.transpose(found).ravel() == elements).all(), (shape, order, result)
        elif len(result) <= 4 and array.size > 1:
            others = itertools.permutations(range(len(result)))
            assert not any((reshaped.transpose(each).ravel() == elements).all() for each in others)
    assert follow > 500


def test_arrays_without_elements_have_none() -> None:
    assert reshaped_order((1, 0), (0, 4), (4, 0)) is None
