"""Fourier transforms of packages, which are matrix products and arithmetic."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

NUMBERS = np.random.default_rng(0)
LAUNCHES = xgpu.Options(products="all", control_flow="launches")


def real(*shape: int) -> Any:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def number(*shape: int) -> Any:
    return (real(*shape) + 1j * real(*shape)).astype(np.complex64)


def spectrogram(x: Any) -> Any:
    places = jnp.arange(0, 1500, 100)[:, None] + jnp.arange(400)
    return jnp.abs(jnp.fft.rfft(x[places] * jnp.hanning(400))) ** 2


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f"of {size}": (jnp.fft.fft, (number(3, size),)) for size in (1, 2, 64, 67, 1000, 4096, 753)},
    **{f"of {size} real ones": (jnp.fft.rfft, (real(2, size),)) for size in (1, 2, 9, 400)},
    **{
        f"to {size} real ones": (lambda x, size=size: jnp.fft.irfft(x, size), (number(2, size // 2 + 1),))
        for size in (1, 2, 3, 9, 400)
    },
    "inverse": (jnp.fft.ifft, (number(2, 300),)),
    "of three dimensions": (jnp.fft.fftn, (number(8, 9, 70),)),
    "of two dimensions, real": (lambda x: (jnp.fft.rfft2(x), jnp.fft.irfft2(jnp.fft.rfft2(x))), (real(2, 24, 100),)),
    "along another dimension": (lambda x: jnp.fft.ifft(x, axis=0), (number(70, 3),)),
    "a spectrogram": (spectrogram, (real(2000),)),
    "a convolution": (lambda x, w: jnp.fft.irfft(jnp.fft.rfft(x, 256) * jnp.fft.rfft(w, 256)), (real(200), real(50))),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    function, arguments = CASES[name]
    found = xgpu.compile(function, *arguments, options=LAUNCHES).run(*arguments)
    for result, wanted in zip(found, jax.tree.leaves(function(*arguments)), strict=True):
        assert np.max(np.abs(result - wanted)) <= 2e-6 * np.max(np.abs(wanted))


def test_double_precision() -> None:
    with jax.enable_x64(True):
        x = NUMBERS.standard_normal(600) + 1j
        (found,) = xgpu.compile(jnp.fft.fft, x, options=LAUNCHES).run(x)
    assert np.max(np.abs(found - np.fft.fft(x))) < 1e-11
