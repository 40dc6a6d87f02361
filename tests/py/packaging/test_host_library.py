"""Host libraries give, bit for bit, what the host executor gives, and what XLA gives within the usual tolerance."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.packaging.packages import Library, aligned, bits, exported, placed
from xgpu.packaging.model import LaunchStep, ZeroStep
from xgpu.packaging.program import flow_of
from xgpu.packaging.steps import make_steps
from xgpu.runtime.compare import compare


def elementwise(x: jax.Array, b: jax.Array) -> jax.Array:
    return jax.nn.gelu(x + b)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    weights = jax.nn.softmax(q @ k.T, axis=-1)
    return weights @ v


def without_tensor_cores(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.maximum(x @ w, 0)


def everything(x: jax.Array, i: jax.Array) -> Any:
    """Several kernels, with values in scratch, an argument and a value that are results, and one without elements."""
    y = jax.nn.softmax(x, axis=0)
    z = y - y.T.sum(0)[:, None]
    return z, x, z.at[i].add(1.0), jnp.cumsum(y, axis=1), z, x[:0]


def mixed(p: jax.Array, c: jax.Array, h: jax.Array, e: jax.Array, s: jax.Array) -> Any:
    return ~p, c * c, h * 2, e + e, s + s, c.real > h.astype(jnp.float32)


def converted(x: jax.Array) -> Any:
    return [x.astype(t) for t in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "int4", "uint4", "bool")]


def views(x: jax.Array, w: jax.Array) -> Any:
    return (x @ w).reshape(-1), x.reshape(-1)


def messages(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x)


def counted(n: jax.Array) -> Any:
    return n + 1, lax.iota(jnp.int32, 7)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "elementwise": (elementwise, ("bf16[33,65]", "bf16[65]")),
    "products": (attention, ("bf16[128,64]", "bf16[128,64]", "bf16[128,64]")),
    "without_tensor_cores": (without_tensor_cores, ("s32[48,200]", "s32[200,24]")),
    "everything": (everything, ("f32[24,24]", "s32[3]")),
    "mixed": (mixed, ("pred[13]", "c64[13]", "f16[13]", "f8e5m2[13]", "s4[13]")),
    "converted": (converted, ("f64[100]",)),
    "messages": (messages, ("f32[70000]",)),
    # The last reshape is nobody's: XLA would do nothing for it.
    "views": (views, ("bf16[128,64]", "bf16[64,128]")),
    "scalars": (counted, ("s64[]",)),
    "empty": (lambda x, y: (x * 2, y.sum(0)), ("f32[0,3]", "f32[0,4]")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str, tmp_path: Path) -> None:
    function, specs = PROGRAMS[name]
    with jax.enable_x64(True):
        package = exported(function, *specs, to=tmp_path, name=name)
        program = xgpu.compile(function, *specs, options=xgpu.Options(products="all"))
    inputs = [np.abs(a) % 24 if a.dtype == np.int32 else a for a in program.random_inputs(1)]
    found = Library(tmp_path, package).run(inputs)
    for result, expected, reference in zip(found, program.run(*inputs), program.reference(*inputs), strict=True):
        np.testing.assert_array_equal(bits(result), bits(expected))
        assert compare(result, reference).agrees


def test_the_programs_have_what_they_are_for() -> None:
    def steps_of(name: str) -> Any:
        function, specs = PROGRAMS[name]
        program = xgpu.compile(function, *specs, options=xgpu.Options(products="all"))
        return make_steps(flow_of(program)), program

    several, _ = steps_of("everything")
    assert sum(isinstance(step, LaunchStep) for step in several.steps) > 2
    assert several.scratch_bytes > 0
    board, _ = steps_of("messages")
    assert any(isinstance(step, ZeroStep) for step in board.steps)
    _, products = steps_of("products")
    assert any(kernel.workspace_bytes for kernel in products.kernels)
    _, left = steps_of("views")
    assert left.main is not None


def update(state: jax.Array, rows: jax.Array, i: jax.Array) -> jax.Array:
    return state.at[i].add(rows)


def test_a_result_in_place_of_an_argument(tmp_path: Path) -> None:
    package = exported(update, "f32[40,6]", "f32[9,6]", "s32[9]", to=tmp_path)
    assert package.signatures[0].in_place == ((0, 0),)
    assert "result may be state" in (tmp_path / "include" / "xgpu" / "update.h").read_text()
    library = Library(tmp_path, package)
    state, rows, i = np.ones((40, 6), np.float32), np.ones((9, 6), np.float32), np.arange(9, dtype=np.int32)
    memories = [
        placed(array, spec) for array, spec in zip((state, rows, i), package.signatures[0].arguments, strict=True)
    ]
    assert library.call(0, [*memories, memories[0]], aligned(0)) == 0
    expected = np.r_[np.full((9, 6), 2.0), np.ones((31, 6))].astype(np.float32)
    np.testing.assert_array_equal(memories[0], bits(expected))
    assert library.call(0, [*memories, memories[1]], aligned(0)) != 0
    assert library.message == "update: 'result' shares memory with 'rows'"


def test_several_sizes(tmp_path: Path) -> None:
    def scaled(x: jax.Array, y: jax.Array) -> jax.Array:
        return (x * 2 - x.sum(0)) @ y

    sizes = [(8, 16), (24, 16), (8, 20)]
    specs = [(f"f32[{m},{n}]", f"f32[{n},3]") for m, n in sizes]
    package = exported(scaled, *specs[0], signatures=specs[1:], to=tmp_path)
    assert package.size_names == ("x_dim0", "x_dim1")
    library = Library(tmp_path, package)
    for number, (m, n) in enumerate(sizes):
        x, y = np.random.default_rng(0).random((m, n), np.float32), np.ones((n, 3), np.float32)
        (found,) = library.run([x, y], number)
        np.testing.assert_allclose(found, scaled(x, y), rtol=1e-5)
    import ctypes

    assert library.function("get_extents")(ctypes.c_int64(9), ctypes.c_int64(16), aligned(64).ctypes) == 5
    assert library.message == (
        "scaled: no kernels for x_dim0 = 9, x_dim1 = 16; there are for x_dim0 = 8, x_dim1 = 16; x_dim0 = 24, "
        "x_dim1 = 16; x_dim0 = 8, x_dim1 = 20"
    )


def test_what_is_wrong_with_a_call(tmp_path: Path) -> None:
    def centred(x: jax.Array) -> jax.Array:
        y = x - x.sum(0)
        return y / y.sum(1, keepdims=True).max()

    package = exported(centred, "f32[64,64]", to=tmp_path)
    library, needed = Library(tmp_path, package), package.signatures[0].scratch_bytes
    x, result, scratch = aligned(64 * 64 * 4), aligned(64 * 64 * 4), aligned(needed)
    assert needed > 0
    cases = [
        ([aligned(0), result], scratch, 1, "'x' is at address 0; it has 16384 bytes"),
        ([aligned(64 * 64 * 4 + 4)[4:], result], scratch, 2, "is not at a multiple of 16 bytes"),
        ([x, aligned(64 * 64 * 4 + 8)[8:]], scratch, 2, "'result' at "),
        ([x, result], aligned(needed + 64)[64:], 2, "'scratch' at "),
        ([x, x], scratch, 3, "'result' shares memory with 'x'"),
        ([x, result], x, 3, "'x' shares memory with scratch"),
        ([x, result], scratch[:-1], 4, f"scratch has {needed - 1} bytes; {needed} are needed"),
    ]
    for memories, memory, status, message in cases:
        assert library.call(0, memories, memory) == status, message
        assert message in library.message
    texts = [library.function("status_text")(status).decode() for status in range(16)]
    assert len(set(texts)) == 16 and texts[-1] == "unknown status"
