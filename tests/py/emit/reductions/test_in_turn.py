"""Reductions as `xgpu.jit` plans them on a CPU, whose threads run in turn: each has its rows or columns to itself."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.device import HOST
from xgpu.interface.api import Compiled, compile_to
from xgpu.runtime.compare import compare


def planned(function: Callable[..., Any], *specs: jax.ShapeDtypeStruct) -> Compiled:
    """Return the program that `xgpu.jit` makes of a function on a CPU."""
    return compile_to(None, function, specs, HOST, xgpu.Options())


def spec(*shape: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, -1)


def norm_of_columns(x: Any) -> Any:
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)


def several(x: Any) -> Any:
    return x.sum(1), jnp.max(x, 1), x.argmin(1), (x > 0).any(1), x + 1


FUNCTIONS = {
    "sum of rows": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0),
    "sum": lambda x: x.sum(),
    "variance": lambda x: x.var(1),
    "largest of columns": lambda x: x.max(0),
    "product": lambda x: jnp.prod(1 + x / 16, 1),
    "softmax": softmax,
    "norm of columns": norm_of_columns,
    "several": several,
}
SHAPES = [(1, 1), (3, 7), (33, 130), (1000, 5), (5, 1000), (257, 256)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, shape: tuple[int, int]) -> None:
    program = planned(FUNCTIONS[name], spec(*shape))
    inputs = program.random_inputs(1)
    for found, expected in zip(program.run(*inputs, sanitize=True), program.reference(*inputs), strict=True):
        assert compare(found, expected).agrees


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "uint32"])
@pytest.mark.parametrize("axis", [0, 1])
def test_types(axis: int, dtype: str) -> None:
    with jax.enable_x64(True):
        program = planned(lambda x: (x.sum(axis), x.max(axis)), spec(65, 48, dtype=jnp.dtype(dtype)))
        inputs = program.random_inputs(2)
        for found, expected in zip(program.run(*inputs), program.reference(*inputs), strict=True):
            assert compare(found, expected).agrees


@pytest.mark.parametrize("name", ["sum of rows", "several", "softmax", "variance"])
def test_threads_share_no_rows(name: str) -> None:
    """So none waits for another: a kernel is loops, and no coroutine."""
    program = planned(FUNCTIONS[name], spec(257, 256))
    for kernel in program.kernels:
        assert kernel.emitter in ("reduce_row", "rows", "loop")
        text = str(kernel.module("lowered"))
        assert "shuffle" not in text and "sync" not in text


def test_threads_hold_no_columns() -> None:
    program = planned(norm_of_columns, spec(512, 256))
    assert {kernel.emitter for kernel in program.kernels} == {"reduce_column", "loop"}
    assert "columns" in {kernel.emitter for kernel in xgpu.compile(norm_of_columns, "f32[512,256]").kernels}


@pytest.mark.parametrize("shape", [(64, 256), (3, 17), (7, 2)], ids=str)
def test_signs_of_sums_of_zeros(shape: tuple[int, int]) -> None:
    """Sums that begin with 0.0 are 0.0, others may be -0.0, whatever order LLVM has chosen."""
    zeros = np.full(shape, -0.0, np.float32)
    (found,) = planned(lambda x: x.sum(1) + 0 * x[:, 0], spec(*shape)).run(zeros)
    assert not np.any(np.signbit(found))
    (found,) = planned(lambda x: lax.reduce(x, jnp.float32(-0.0), lax.add, (1,)), spec(*shape)).run(zeros)
    assert np.all(np.signbit(found))


def test_numbers_that_are_none() -> None:
    x = np.random.default_rng(0).standard_normal((6, 300)).astype(np.float32)
    x[1, 7], x[2, 8], x[3, 9], x[4, [1, 2]] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    program = planned(lambda x: (x.sum(1), x.max(1), x.argmax(1), x.sum(0)), spec(6, 300))
    for found, expected in zip(program.run(x), program.reference(x), strict=True):
        assert compare(found, expected).agrees


def test_sums_are_as_exact_as_those_of_many_threads() -> None:
    """Not the rounding errors of one sum of 2^20 elements, one after the other."""
    x = np.random.default_rng(0).random((2, 1 << 18)).astype(np.float32)
    (found,) = planned(lambda x: x.sum(1), spec(2, 1 << 18)).run(x)
    assert np.allclose(found, x.astype(np.float64).sum(1), rtol=4e-6)
