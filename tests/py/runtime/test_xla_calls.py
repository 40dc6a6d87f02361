"""Kernels inside XLA's programs on the CPU: types, several cores, errors, export, and what replaces them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import export

import xgpu
from tests.py.runtime.host.host_kernels import BARRIER, compare, constants, kernel, reverse
from xgpu import ir
from xgpu.runtime import jax_backend, xla_calls
from xgpu.target.host.kernel_source import to_text
from xgpu.target.host.machine_code import host_source

LARGE = 1 << 19
"""Elements of an array that is worth several cores."""


def launch(text: str, *arrays: Any, results: Any = None) -> Any:
    """Call a kernel's text on arrays; it writes one like the first, or ``results``."""
    nothing = jax.ShapeDtypeStruct((0,), np.bool_)
    specs = [jax.ShapeDtypeStruct(arrays[0].shape, arrays[0].dtype)] if results is None else results
    return jax.jit(lambda *given: jax.ffi.ffi_call(xla_calls.TARGET, [*specs, nothing])(*given, kernel=text)[0])(
        *arrays
    )


def text_of(llvm: str) -> str:
    with ir.make_context():
        return to_text(host_source(ir.Module.parse(llvm)))


def test_a_program_calls_nothing_through_python() -> None:
    assert xla_calls.HANDLER is not None
    # Inside another program: alone, the text of a lowered program is that of jax.jit.
    text = jax.jit(xgpu.jit(lambda x: jnp.sin(x) + jnp.sum(x))).lower(jnp.ones(8)).as_text()
    assert text.count(f"stablehlo.custom_call @{xla_calls.TARGET}") == 1
    assert "callback" not in text


TYPES = (np.bool_, np.int8, np.uint64, np.complex128, np.float64, np.float16, jnp.bfloat16, jnp.float8_e4m3fn)


@pytest.mark.parametrize("dtype", [*TYPES, ml_dtypes.int4, ml_dtypes.uint2], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), (5, 7), (0, 3)], ids=str)
def test_types_and_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    with jax.enable_x64(True):
        x = jnp.asarray(np.arange(35).reshape(5, 7) % 2, dtype)[: shape[0] if shape else 1, : shape[1] if shape else 1]
        x = x.reshape(shape)
        y = jnp.ones_like(x)
        got, full = xgpu.jit(lambda x, y: (jnp.where(x == y, y, x).T, jnp.ones((3,), dtype)))(x, y)
        assert got.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(x).T)
        np.testing.assert_array_equal(np.asarray(full), np.ones(3, dtype))


def test_a_loop_of_launches_on_several_cores() -> None:
    x = jnp.arange(LARGE, dtype=jnp.float32)
    step = xgpu.jit(lambda c: c * 0.5 + 1)
    got = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, c: step(c), x))(x)
    expected = np.arange(LARGE, dtype=np.float32)
    for _ in range(20):
        expected = expected * np.float32(0.5) + np.float32(1)
    np.testing.assert_array_equal(got, expected)


def test_threads_that_wait_on_several_cores() -> None:
    blocks = 256
    x = jnp.arange(256 * blocks, dtype=jnp.float32)
    got = launch(text_of(reverse(256, blocks)), x)
    np.testing.assert_array_equal(got, np.asarray(x).reshape(blocks, 256)[:, ::-1].reshape(-1))


def test_calls_from_several_threads_at_once() -> None:
    step = xgpu.jit(lambda x: (x + 1, jnp.sum(x, axis=1)))

    def run(number: int) -> bool:
        x = jnp.full((512, LARGE // 512), number, jnp.float32)
        for count in range(5):
            x, sums = step(x)
            if not (np.asarray(sums) == (number + count) * (LARGE // 512)).all():
                return False
        return bool((np.asarray(x) == number + 5).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(8)))


@pytest.mark.parametrize("elements", [8, LARGE], ids=["one core", "several cores"])
def test_subnormal_numbers_stay(elements: int) -> None:
    x = jnp.full(elements, 1e-39, jnp.float32)
    np.testing.assert_array_equal(xgpu.jit(lambda x: x * 0.5)(x), np.full(elements, 1e-39, np.float32) / 2)


def meeting_apart(blocks: int) -> str:
    """Return a kernel in whose last block the second warp does not come to the barrier."""
    body = f"""{constants(31, blocks - 1)}
{compare("is_first", "ule", "tx", "c31")}
{compare("is_early", "ult", "bx", f"c{blocks - 1}")}
  %waits = llvm.or %is_first, %is_early : i1
  llvm.cond_br %waits, ^meet, ^end
^meet:
  {BARRIER}
  llvm.br ^end
^end:"""
    return kernel(body, grid=(blocks, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("blocks", [2, 512], ids=["one core", "several cores"])
def test_threads_that_do_not_meet_are_an_error(blocks: int) -> None:
    text = text_of(meeting_apart(blocks))
    message = rf"kernel 'k'.*thread \(0, 0, 0\) of block \({blocks - 1}, 0, 0\) waits at barrier 1 for its block, but"
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            jax.block_until_ready(launch(text, jnp.zeros(32)))
    assert float(jnp.sum(xgpu.jit(lambda x: x + 1)(jnp.zeros(LARGE)))) == LARGE


def test_wrong_calls_are_errors() -> None:
    good = text_of(reverse(32))
    x = jnp.zeros(32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="kernel 'k' takes 2 buffers, another number was given"):
        launch(good, x, x)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the text of a kernel is damaged"):
        launch(good[:-8], x)
    spec = jax.ShapeDtypeStruct((32,), np.float32)
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"a call of xgpu\.jit has one attribute, the text of a kernel"
    ):
        jax.jit(lambda x: jax.ffi.ffi_call(xla_calls.TARGET, spec)(x, kernel=np.int32(1)))(x)
    aligned = text_of(reverse(32).replace("llvm.readonly", f"llvm.readonly, llvm.align = {1 << 32}"))
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"kernel 'k': a buffer is not aligned to {1 << 32} bytes"):
        launch(aligned, x)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_while_a_kernel_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    function = xgpu.jit(lambda x: x * 77 + 5)
    with monkeypatch.context() as patch:
        patch.setattr(xla_calls, "load_source", interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(jnp.ones(3))
    np.testing.assert_array_equal(function(jnp.ones(3)), np.full(3, 82))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("name", "message"), [("from_text", "KeyboardInterrupt"), ("_put", "xgpu was interrupted")])
def test_ctrl_c_where_xla_loads_a_kernel(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, x = text_of(reverse(96)), jnp.arange(96.0)
    with monkeypatch.context() as patch:
        patch.setattr(xla_calls, name, interrupted)
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            launch(text, x)
    np.testing.assert_array_equal(launch(text, x), x[::-1])


def program(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.lax.fori_loop(0, 3, lambda _, c: (c[0] * 2, c[1] + jnp.sum(c[0])), (x, x)), x.at[1].add(1)


def test_by_callback_where_the_interface_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.arange(5.0)
    expected = jax.jit(program)(x)
    monkeypatch.setattr(jax_backend, "HANDLER", None)
    step = xgpu.jit(lambda x: program(x))
    assert xla_calls.TARGET not in step.lower(x).as_text()
    jax.tree.map(np.testing.assert_array_equal, step(x), expected)


@pytest.mark.parametrize(
    ("change", "by"), [("API_MAJOR 0", "API_MAJOR 1"), ("void* data;", "void* memory;"), ("int64_t rank", "half rank")]
)
def test_an_interface_that_is_unknown(change: str, by: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = "xla/ffi/api/c_api.h"
    text = Path(jax.ffi.include_dir(), name).read_text()
    assert change in text
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text.replace(change, by))
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    assert xla_calls.make_handler() is None


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_programs_are_exported(platform: str) -> None:
    x = jnp.arange(5.0)
    exported = export.export(xgpu.jit(program), platforms=[platform])(x)
    assert {"cpu": xla_calls.TARGET, "cuda": "__gpu$xla.gpu.ptx"}[platform] in exported.mlir_module()
    if platform == "cpu":
        jax.tree.map(np.testing.assert_array_equal, jax.jit(exported.call)(x), jax.jit(program)(x))
