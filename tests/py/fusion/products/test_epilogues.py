"""Epilogues that need what heroes of several levels make: they are part of the last one's kernel."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

# Fewer columns than a column program has, which would be one kernel.
X, Y = "f32[64,6]", "f32[30,6]"


def total(x: Any) -> Any:
    return jnp.sum(x, 0)


def product(x: Any) -> Any:
    return total(x) * total(x * total(x))


def of_another_shape(x: Any, y: Any) -> Any:
    return total(x) * total(y * total(x))


def product_of_three(x: Any) -> Any:
    first = total(x)
    second = total(x * first)
    return (first + second) * total(x * second)


def with_more_of_the_first(x: Any, y: Any) -> Any:
    return total(x * total(x)) * (jnp.abs(total(x)) + 1) + y[0]


def at_other_indices(x: Any) -> Any:
    return total(x * total(x)) * total(x)[::-1]


def of_one_level(x: Any, y: Any) -> Any:
    return total(x) * total(y)


JOINED: dict[str, tuple[Callable[..., Any], tuple[str, ...], int]] = {
    "product": (product, (X,), 2),
    "of another shape": (of_another_shape, (X, Y), 2),
    "of three levels": (product_of_three, (X,), 3),
    "with more of the first": (with_more_of_the_first, (X, Y), 2),
    "at other indices": (at_other_indices, (X,), 2),
}


def check_numbers(compiled: xgpu.Compiled) -> None:
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        # Sums of 64 numbers in another order, of products up to thousands.
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", JOINED)
def test_heroes_of_several_levels(name: str) -> None:
    function, specs, kernels = JOINED[name]
    compiled = xgpu.compile(function, *specs)
    assert [each.kernel.emitter for each in compiled.launches] == ["reduce_column"] * kernels
    assert len(compiled.launches[-1].outputs) == 1
    check_numbers(compiled)


def test_two_kernels_of_one_level_do_not_wait_for_each_other() -> None:
    compiled = xgpu.compile(of_one_level, X, Y)
    assert [each.kernel.emitter for each in compiled.launches] == ["parts", "loop"]
    check_numbers(compiled)
    assert len(xgpu.compile(of_one_level, X, X).launches) == 1
