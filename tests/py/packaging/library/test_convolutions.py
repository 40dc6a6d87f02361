"""Convolutions of packages are matrix products of what windows see; tensor cores multiply f32 however it lies."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

NUMBERS = np.random.default_rng(0)
LAST = ("NHWC", "HWIO", "NHWC")
convolved = lax.conv_general_dilated
last = partial(convolved, dimension_numbers=LAST)


def drawn(*shape: int, dtype: Any = np.float32) -> Any:
    return jnp.asarray(NUMBERS.integers(-4, 5, shape), dtype)


HALF = jnp.bfloat16
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    # Windows that do not overlap, and those of one element, are the image itself under another shape.
    "tiles": (
        lambda x, w: last(x, w, (8, 8), "VALID"),
        (drawn(2, 32, 40, 16, dtype=HALF), drawn(8, 8, 16, 64, dtype=HALF)),
        "product",
    ),
    "single elements": (
        lambda x, w: last(x, w, (1, 1), "VALID"),
        (drawn(2, 14, 14, 128, dtype=HALF), drawn(1, 1, 128, 64, dtype=HALF)),
        "product",
    ),
    "single elements, in steps": (
        lambda x, w: last(x, w, (2, 3), "VALID"),
        (drawn(2, 29, 29, 64, dtype=HALF), drawn(1, 1, 64, 128, dtype=HALF)),
        "product",
    ),
    "windows": (
        lambda x, w: last(x, w, (1, 1), "SAME"),
        (drawn(2, 14, 15, 32, dtype=HALF), drawn(3, 3, 32, 64, dtype=HALF)),
        "product",
    ),
    "few channels": (
        lambda x, w: last(x, w, (2, 2), [(3, 3), (2, 3)]),
        (drawn(1, 40, 41, 3, dtype=HALF), drawn(7, 7, 3, 64, dtype=HALF)),
        "warp_product",
    ),
    "channels first, f32": (
        lambda x, w: convolved(x, w, (2, 2), "SAME"),
        (drawn(2, 32, 27, 25), drawn(64, 32, 3, 3)),
        "product",
    ),
    "whole numbers": (
        lambda x, w: last(x, w, (1, 1), "SAME", preferred_element_type=jnp.int32),
        (drawn(1, 16, 16, 64, dtype=jnp.int8), drawn(3, 3, 64, 64, dtype=jnp.int8)),
        "product",
    ),
    "distances inside": (
        lambda x, w: last(x, w, (1, 2), [(-1, 4), (3, -2)], rhs_dilation=(2, 3)),
        (drawn(1, 20, 21, 32), drawn(3, 2, 32, 64)),
        "product",
    ),
    "transposed": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        (drawn(1, 10, 10, 64), drawn(4, 4, 64, 32)),
        "product",
    ),
    "turned windows": (
        lambda x, w: jax.grad(lambda x: convolved(x, w, (1, 1), "SAME").sum())(x),
        (drawn(1, 32, 12, 13), drawn(64, 32, 3, 3)),
        "product",
    ),
    "groups": (
        lambda x, w: last(x, w, (1, 1), "SAME", feature_group_count=2),
        (drawn(1, 16, 16, 128), drawn(3, 3, 64, 64)),
        "product",
    ),
    "long windows": (
        lambda x, w: last(x, w, (2, 1), "SAME", rhs_dilation=(1, 2)),
        (drawn(1, 70, 20, 16), drawn(17, 3, 16, 32)),
        "product",
    ),
    "one dimension": (
        lambda x, w: convolved(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        (drawn(2, 200, 64, dtype=HALF), drawn(3, 64, 128, dtype=HALF)),
        "product",
    ),
    "three dimensions": (
        lambda x, w: convolved(x, w, (1, 1, 1), "SAME"),
        (drawn(1, 16, 8, 8, 8), drawn(32, 16, 3, 3, 3)),
        "product",
    ),
    "a filter": (lambda x, w: jnp.convolve(x, w, mode="same"), (drawn(5000), drawn(501)), "reduce_row"),
    # What kernels of f32 read along the sum is turned.
    "a product of f32": (lambda x, w: x @ w, (drawn(200, 160), drawn(160, 96)), "product"),
    "a product of both turned": (lambda x, w: lax.dot(x.T, w), (drawn(160, 200), drawn(160, 96)), "product"),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    function, arguments, emitter = CASES[name]
    program = xgpu.compile(function, *arguments, options=xgpu.Options(products="all", control_flow="launches"))
    assert emitter in [kernel.emitter for kernel in program.kernels]
    (found,), wanted = program.run(*arguments), np.asarray(function(*arguments))
    # Whole numbers this small are exact, as tf32 too, up to the rounding of the result.
    np.testing.assert_array_equal(found, wanted)


def test_more_precision_is_kept() -> None:
    function = partial(lax.dot, precision="highest")
    program = xgpu.compile(function, "f32[200,160]", "f32[160,96]", options=xgpu.Options(products="all"))
    assert [kernel.emitter for kernel in program.kernels] == ["loop"]


@pytest.mark.parametrize("products", ["auto", "all"])
def test_libraries_keep_their_convolutions(products: Any) -> None:
    function, arguments, _ = CASES["windows"]
    program = xgpu.compile(lambda x, w: function(x, w) + 1, *arguments, options=xgpu.Options(products=products))
    assert "stablehlo.convolution" in program.ir("prepared")
