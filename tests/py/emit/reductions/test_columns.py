"""Column programs: reductions of the same columns, and what is made of them, in one kernel that reads arrays once."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.device import device
from xgpu.interface.explanation import plan_reasons

type Function = Callable[..., jax.Array]


def softmax(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x, axis=1)


def norm(x: jax.Array, g: jax.Array, b: jax.Array) -> jax.Array:
    centred = x - x.mean(1, keepdims=True)
    y = centred * jax.lax.rsqrt(jnp.square(centred).mean(1, keepdims=True) + 1e-5)
    return y * g[:, None] + b[:, None]


def gradient(x: jax.Array, t: jax.Array) -> jax.Array:
    return jax.grad(lambda x: jnp.sum(softmax(x) * t))(x)


def log_sum(x: jax.Array) -> jax.Array:
    return jax.scipy.special.logsumexp(x, axis=0)


PROGRAMS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "softmax": (softmax, ("f32[3,64,99]",)),
    "softmax of an odd number of rows": (softmax, ("bf16[2,43,35]",)),
    "softmax of long columns": (softmax, ("f32[2,512,40]",)),
    "softmax of the longest columns": (softmax, ("f32[1,2048,40]",)),
    "softmax of the longest columns of bf16": (softmax, ("bf16[1,1024,40]",)),
    "norm of long columns": (norm, ("f32[1,1500,16]", "f32[1500]", "f32[1500]")),
    "softmax in a middle dimension": (lambda x: jax.nn.softmax(x, axis=2), ("f16[2,3,17,4,8]",)),
    "norm": (norm, ("f32[2,96,30]", "f32[96]", "f32[96]")),
    "gradient": (gradient, ("f32[2,64,81]", "f32[2,64,81]")),
    "log of a sum": (log_sum, ("f32[37,5,33]",)),
    "variance": (lambda x: x.var(0), ("f32[16,300]",)),
    "reshaped": (lambda x: softmax(x).reshape(2, 24, 6, 8) * 2, ("f32[2,24,48]",)),
    "argmax": (lambda x: (jnp.argmax(x, 1)[:, None] + x) / jnp.exp(x).sum(1, keepdims=True), ("f32[2,40,20]",)),
    "f64": (softmax, ("f64[2,20,9]",)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_computes_what_xla_does(name: str) -> None:
    function, specs = PROGRAMS[name]
    with jax.enable_x64("f64" in name):
        program = xgpu.compile(function, *specs)
        assert [kernel.emitter for kernel in program.kernels] == ["columns"]
        inputs = program.random_inputs(1)
        results = program.run(*inputs, sanitize=True)
        for result, expected in zip(results, program.reference(*inputs), strict=True):
            tolerance = 4 * float(jnp.finfo(expected.dtype).eps)
            wide = (np.asarray(each, np.float64) for each in (result, expected))
            np.testing.assert_allclose(
                *wide, rtol=tolerance, atol=max(tolerance, 3e-6 if expected.itemsize == 4 else 0)
            )


@pytest.mark.parametrize(("rows", "loads"), [(64, 16), (256, 16), (512, 32), (1024, 32), (2000, 32)])
def test_elements_are_loaded_and_computed_once(rows: int, loads: int) -> None:
    (kernel,) = xgpu.compile(softmax, f"f32[16,{rows},4096]").kernels
    assert kernel.ptx.count("ld.global") == loads
    assert kernel.ptx.count("ex2.approx") == loads


@pytest.mark.parametrize(
    ("function", "specs", "reason"),
    [
        (softmax, ("f32[64,2049,512]",), "columns of 2,049 elements: the threads of a block hold 2,048"),
        (softmax, ("bf16[64,1025,512]",), "columns of 1,025 elements: the threads of a block hold 1,024"),
        (
            gradient,
            ("f32[4,1025,64]", "f32[4,1025,64]"),
            "columns of 1,025 elements: the threads of a block hold 1,024",
        ),
        (softmax, ("f32[4,64,7]",), "columns that lie beside each other in memory are fewer than 8"),
        (
            lambda x, y: x - y.sum(1, keepdims=True),
            ("f32[64,640,512]", "f32[64,640,512]"),
            "it reads none of the arrays whose columns are held, which are read by short lines",
        ),
        (lambda x: x / x.sum((0, 2), keepdims=True), ("f32[4,64,9,33]",), "the reduction is not one of columns"),
    ],
)
def test_what_is_refused(function: Function, specs: tuple[str, ...], reason: str) -> None:
    program = xgpu.compile(function, *specs)
    assert len(program.kernels) > 1
    assert reason in plan_reasons(program, device("sm_90a"), only_stored=False)


def test_programs_of_few_columns_share_a_launch() -> None:
    def several(*arrays: jax.Array) -> list[jax.Array]:
        return [softmax(each) for each in arrays]

    program = xgpu.compile(several, "f32[2,64,99]", "f32[3,20,33]", "f32[1,400,8]")
    assert [kernel.emitter for kernel in program.kernels] == ["parts"]
    inputs = program.random_inputs(2)
    for result, expected in zip(program.run(*inputs, sanitize=True), program.reference(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=3e-6)
