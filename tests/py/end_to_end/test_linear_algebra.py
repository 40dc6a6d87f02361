"""Linear algebra: JAX calls cuSOLVER's code for it on a GPU, and LAPACK's on the processor."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.cli.main import main
from xgpu.errors import InvalidInput


def _definite(x: Any) -> Any:
    return x @ x.T + jnp.eye(len(x), dtype=x.dtype)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "cholesky": lambda x: jnp.linalg.cholesky(_definite(x)) * 2,
    "qr": lambda x: jnp.linalg.qr(x + 1),
    "eigh": lambda x: jnp.linalg.eigh(_definite(x)),
    "solve": lambda x: jnp.linalg.solve(_definite(x), jnp.sin(x)),
    "svd": lambda x: jnp.linalg.svd(x * 2),
    "det": lambda x: jnp.linalg.det(x) + 1,
    "in-a-loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, a: jnp.linalg.inv(_definite(a)) + i, x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_the_host(name: str) -> None:
    program = xgpu.compile(PROGRAMS[name], "f32[8,8]")
    assert program.kernels
    (x,) = program.random_inputs()
    expected = jax.tree.leaves(jax.jit(PROGRAMS[name])(x))
    for results in (program.run(x), program.reference(x), jax.tree.leaves(program(x))):
        for ours, theirs in zip(results, expected, strict=True):
            # The same LAPACK on inputs that differ in the last place.
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_of_doubles() -> None:
    program = xgpu.compile(PROGRAMS["cholesky"], "f64[8,8]")
    (x,) = program.random_inputs()
    np.testing.assert_allclose(program.run(x)[0], 2 * np.linalg.cholesky(x @ x.T + np.eye(8)), rtol=1e-12)


def test_the_program_is_that_of_the_gpu() -> None:
    program = xgpu.compile(PROGRAMS["cholesky"], "f32[8,8]")
    assert "@cusolver_potrf_ffi" in program.ir("stablehlo")
    assert program.on_cpu is program.on_cpu
    assert "@lapack_spotrf_ffi" in program.on_cpu.ir("stablehlo")


def test_other_programs_are_the_same_everywhere() -> None:
    program = xgpu.compile(lambda x: jnp.sort(x + 1), "f32[8]")
    assert program.on_cpu is program


def test_what_only_a_gpu_has() -> None:
    def doubled(x: Any) -> Any:
        call = jax.ffi.ffi_call("xgpu_test_no_such_code", jax.ShapeDtypeStruct((8,), jnp.float32))
        return jax.lax.platform_dependent(x, cuda=call) + 1

    program = xgpu.compile(doubled, "f32[8]")
    with pytest.raises(InvalidInput, match=r"lowering doubled for cpu failed: NotImplementedError"):
        program.run(np.zeros(8, np.float32))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text("import jax.numpy as jnp\ndef f(x):\n    return jnp.linalg.qr(x + 1)[1] * 2\n")
    assert main(["run", f"{file}:f", "--arg", "f32[8,8]", "--check"]) == 0
    assert "agrees" in capsys.readouterr().out
