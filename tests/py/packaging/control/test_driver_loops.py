"""Loops and branches of packages on a CUDA driver that stands in for the real one: order, reads, capture, failures."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tests.py.packaging.packages import STRICT, do_run, exported, tool

HERE = Path(__file__).parent
SCENARIOS = "counted", "counted_under_capture", "counted_by_a_value", "values_decide", "capture", "failures", "threads"


def looped(x: jax.Array, i: jax.Array, w: jax.Array) -> jax.Array:
    """A loop that is counted, one that values end, and a choice."""
    x = lax.fori_loop(0, 3, lambda _, x: x @ w, x)
    x = lax.while_loop(lambda x: jnp.sum(x) < 100.0, lambda x: jnp.cumsum(x @ w, axis=0), x)
    return lax.switch(i, [lambda x: x @ w, lambda x: jnp.cumsum(x, axis=1), lambda x: x], x)


def counted(x: jax.Array, b: jax.Array) -> jax.Array:
    """An odd number of steps that cannot be made in place."""
    return lax.fori_loop(0, 9, lambda _, x: jnp.roll(x, 1, 0) * 0.5 + b, x)


def given(n: jax.Array, x: jax.Array) -> jax.Array:
    """As many steps as an argument says."""
    return lax.fori_loop(0, n, lambda _, x: jnp.roll(x, 1, 0) * 0.5, x)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages, a program that calls them, and a driver."""
    gcc, built = tool("gcc"), tmp_path_factory.mktemp("driver")
    exported(looped, "f32[64,64]", "s32[]", "f32[64,64]", to=built / "looped", host=False)
    exported(counted, "f32[64,64]", "f32[64,64]", to=built / "counted", host=False)
    exported(given, "s32[]", "f32[64,64]", to=built / "given", host=False)
    shared = "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-DNEW"
    do_run(gcc, *STRICT, *shared, HERE.parent / "fake_cuda.c", "-o", built / "libcuda.so.1", "-lpthread")
    packages = [
        word
        for name in ("looped", "counted", "given")
        for word in (f"-I{built / name / 'include'}", source(built, name))
    ]
    scenarios = *packages, f"-I{HERE.parent}", HERE / "scenarios.c", "-L", built, "-l:libcuda.so.1", "-ldl", "-lpthread"
    do_run(gcc, "-std=c99", "-O2", *STRICT, *scenarios, "-o", built / "scenarios")
    do_run(gcc, "-std=c11", "-g", "-fsanitize=address,undefined", *STRICT, *scenarios, "-o", built / "scenarios_asan")
    do_run(gcc, "-std=c11", "-g", "-fsanitize=thread", *STRICT, *scenarios, "-o", built / "scenarios_tsan")
    return built


def source(built: Path, name: str) -> Path:
    return built / name / "src" / f"{name}.c"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario(scenario: str, folder: Path) -> None:
    do_run(folder / "scenarios", scenario, LD_LIBRARY_PATH=str(folder))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_without_what_c_does_not_define(scenario: str, folder: Path) -> None:
    do_run(folder / "scenarios_asan", scenario, LD_LIBRARY_PATH=str(folder), ASAN_OPTIONS="detect_leaks=0")


def test_threads_do_not_race(folder: Path) -> None:
    do_run(folder / "scenarios_tsan", "threads", LD_LIBRARY_PATH=str(folder))
