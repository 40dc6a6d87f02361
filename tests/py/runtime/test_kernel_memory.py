"""Kernels of programs on the CPU are let go when nobody can launch them any more, and not before."""

import gc
import os
import subprocess
import sys
import weakref
from collections import deque
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable

import xgpu
from xgpu.runtime import xla_calls
from xgpu.target.host import linker
from xgpu.target.llvm.module import optimize, parse_llvm_ir

pytestmark = pytest.mark.usefixtures("own_garbage")

LARGE = 1 << 19
"""Elements of an array that is worth several cores."""


@pytest.fixture(autouse=True)
def no_spare_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is unloaded as soon as nobody uses it."""
    monkeypatch.setattr(linker._make_linker(), "_last", deque(maxlen=0))


def kernels() -> int:
    """Return how many kernels the process has for XLA."""
    assert xla_calls.HANDLER is not None
    gc.collect()
    return xla_calls.HANDLER.count_kernels()


def scaled(factor: float) -> Any:
    return xgpu.jit(lambda x: x * factor + 1)


def test_functions_that_are_gone_leave_nothing() -> None:
    x, before = jnp.arange(8.0), kernels()
    functions = [scaled(float(factor)) for factor in range(3)]
    for function in functions:
        function(x)
    assert kernels() == before + 3
    np.testing.assert_array_equal(functions[2](x), 2 * np.arange(8) + 1)
    del function, functions[0]
    assert kernels() == before + 2
    functions.clear()
    assert kernels() == before


def test_a_kernel_lives_as_long_as_one_of_its_executables() -> None:
    x, before = jnp.arange(16.0), kernels()
    first, second, lowered = scaled(5.0), scaled(5.0), scaled(5.0).lower(x)
    first(x), second(x)
    compiled = lowered.compile()
    assert kernels() == before + 1
    del first, second, lowered
    assert kernels() == before + 1
    np.testing.assert_array_equal(compiled(x), 5 * np.arange(16) + 1)
    parts = serialize_executable.serialize(compiled)
    del compiled
    assert kernels() == before
    loaded = serialize_executable.deserialize_and_load(*parts)
    np.testing.assert_array_equal(loaded(x), 5 * np.arange(16) + 1)
    assert kernels() == before + 1


def test_what_is_lowered_stays_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    x, before = jnp.arange(32.0), kernels()
    lowered = scaled(6.0).lower(x)
    assert kernels() == before + 1
    monkeypatch.setattr(xla_calls, "_MOST_WAITING", 1)
    scaled(7.0).lower(x)
    # The older one is compiled again, from its text in the program.
    np.testing.assert_array_equal(lowered.compile()(x), 6 * np.arange(32) + 1)


def test_launches_that_outlive_their_function() -> None:
    x = jnp.arange(LARGE, dtype=jnp.float32)
    results, before = [], kernels()
    for factor in range(8):
        results.append(scaled(100.0 + factor)(x))
        kernels()
    for factor, result in enumerate(results):
        np.testing.assert_array_equal(result, np.arange(LARGE, dtype=np.float32) * np.float32(100.0 + factor) + 1)
    assert kernels() == before


def test_code_is_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "define i32 @f() {\n  ret i32 4711\n}\n"
    _, library = linker.link(text, ["f"])
    address, again = linker.link(text, ["f"])
    assert again is library
    assert address["f"]
    gone = weakref.ref(library)
    del library, again
    gc.collect()
    assert gone() is None
    monkeypatch.setattr(linker._make_linker(), "_last", deque(maxlen=1))
    gone = weakref.ref(linker.link(text, ["f"])[1])
    assert gone() is not None


def test_passes_of_llvm_keep_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def run(times: int) -> None:
        for _ in range(times):
            optimize(parse_llvm_ir("define void @f() {\n  ret void\n}\n"), linker.machine(), 3)

    run(20)
    before = resident()
    run(100)
    grown = resident() - before
    assert grown < 1 << 20, f"{grown} bytes after 100 modules"


def test_what_xla_calls_outlives_the_module() -> None:
    """Executables that Python frees at its end, after the module's names are gone, still count what they give back."""
    script = """
import gc, weakref
from xgpu.runtime import xla_calls
handler = weakref.ref(xla_calls.HANDLER)
del xla_calls.HANDLER
gc.collect()
assert handler() is not None
"""
    subprocess.run([sys.executable, "-c", script], check=True)
