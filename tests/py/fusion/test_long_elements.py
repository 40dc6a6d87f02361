"""Trees that programs write out: no thread computes an element from very many, and few kernels are added for that."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu.runtime.compare import compare


def every_second(x: Any) -> Any:
    while x.shape[0] > 1:
        x = x[::2] + x[1::2]
    return x


def halves(x: Any) -> Any:
    while x.shape[0] > 1:
        middle = x.shape[0] // 2
        x = jnp.maximum(x[:middle], x[middle:] * 0.5)
    return x


def haar(x: Any) -> Any:
    """All levels of a wavelet, the finest of which come first and are long."""
    details = []
    while x.shape[0] > 1:
        even, odd = x[::2], x[1::2]
        details.append((even - odd) * 0.5)
        x = (even + odd) * 0.5
    return jnp.concatenate([x, *reversed(details)])


def gradient_in_place(x: Any) -> Any:
    """Of a wavelet whose levels update one array: even and odd elements, which a warp computes in turn, at each."""

    def levels(x: Any) -> Any:
        size = x.shape[0]
        while size > 1:
            even, odd = x[:size:2], x[1:size:2]
            x = x.at[: size // 2].set((even + odd) * 0.5).at[size // 2 : size].set((even - odd) * 0.5)
            size //= 2
        return x

    return jax.grad(lambda x: jnp.sum(levels(x) ** 3))(x)


def of_rows(x: Any) -> Any:
    while x.shape[1] > 1:
        x = x[:, ::2] + jnp.sin(x[:, 1::2])
    return x


def sizes(program: xgpu.Compiled) -> list[int]:
    """How many elements each kernel's first result has."""
    return [program.values[launch.outputs[0]].shape[0] for launch in program.launches]


@pytest.mark.parametrize(
    ("function", "spec", "kernels"),
    [
        (every_second, "f32[65536]", 2),
        (every_second, "f32[1048576]", 3),
        (halves, "f32[65536]", 2),
        (haar, "f32[65536]", 3),
        (of_rows, "f32[16,4096]", 2),
        (gradient_in_place, "f32[1024]", 4),
        (gradient_in_place, "f32[16384]", 5),
        # As long as a few launches.
        (every_second, "f32[512]", 1),
        (of_rows, "f32[4096,64]", 1),
    ],
)
def test_kernels_of_trees(function: Callable[..., Any], spec: str, kernels: int) -> None:
    program = xgpu.compile(function, spec)
    assert len(program.kernels) == kernels
    (x,) = program.random_inputs()
    (found,), (expected,) = program.run(x), program.reference(x)
    assert compare(found, expected).agrees


def test_every_step_of_a_tree_has_fewer_elements() -> None:
    found = sizes(xgpu.compile(every_second, "f32[1048576]"))
    assert found == sorted(found, reverse=True)
    assert all(before <= 4096 * after for before, after in zip([1048576, *found], found, strict=False))


def test_what_no_threads_would_share_stays_one_kernel() -> None:
    """An element takes long, but reads one element of each value."""

    def formula(x: Any) -> Any:
        for _ in range(40):
            x = jnp.sin(x) * 0.5 + jnp.exp(-x) * jnp.log1p(x * x)
        return x

    assert len(xgpu.compile(formula, "f32[64]").kernels) == 1


def test_chains_of_keys_stay_one_kernel() -> None:
    def keys(key: Any) -> Any:
        for number in range(20):
            key = jax.random.fold_in(key, number)
        return jax.random.key_data(key)

    assert len(xgpu.compile(lambda words: keys(jax.random.wrap_key_data(words)), "u32[2]").kernels) <= 2
