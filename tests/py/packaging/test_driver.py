"""The part of a package that calls the CUDA driver, with a driver that stands in for the real one.

`fake_cuda.c` checks that calls fit together, and fails where a test asks it to; `scenarios.c` has the tests.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from tests.py.packaging.packages import STRICT, do_run, exported, tool

HERE = Path(__file__).parent
SCENARIOS = (
    *("launches", "in_place", "contexts", "contexts_of_one_address", "capture", "unload", "targets", "failures"),
    "threads",
)


def driven(state: jax.Array, rows: jax.Array, i: jax.Array, x: jax.Array, w: jax.Array) -> tuple[jax.Array, ...]:
    """A copy, zeros, and three kernels, one with much shared memory on sm_90a."""
    return state.at[i].add(rows), jnp.cumsum(rows.reshape(-1)), jax.nn.relu(x @ w)


SPECS = "f32[4000,60]", "f32[900,60]", "s32[900]", "bf16[512,512]", "bf16[512,256]"

TRIED = """
#include <stdio.h>
#include "xgpu/driven.h"
int main(void) {
  int status = driven_prepare(NULL);
  printf("%d %s %s\\n", status, driven_status_text(status), driven_error_message());
  return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, programs that call it, and drivers: a whole one, and some that lack functions."""
    gcc, built = tool("gcc"), tmp_path_factory.mktemp("driver")
    exported(driven, *SPECS, to=built / "package", targets=["sm_80", "sm_90a", "sm_120"], host=False)
    include, source = f"-I{built / 'package' / 'include'}", built / "package" / "src" / "driven.c"
    for name, define in (("new", "NEW"), ("old", "OLD"), ("very_old", "VERY_OLD")):
        (built / name).mkdir()
        shared = "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", f"-D{define}"
        do_run(gcc, *STRICT, *shared, HERE / "fake_cuda.c", "-o", built / name / "libcuda.so.1", "-lpthread")
    fake = "-L", built / "new", "-l:libcuda.so.1", f"-I{HERE}"
    scenarios = include, HERE / "scenarios.c", source, *fake, "-ldl", "-lpthread"
    do_run(gcc, "-std=c99", "-O2", *STRICT, *scenarios, "-o", built / "scenarios")
    do_run(gcc, "-std=c11", "-g", "-fsanitize=address,undefined", *STRICT, *scenarios, "-o", built / "scenarios_asan")
    do_run(gcc, "-std=c11", "-g", "-fsanitize=thread", *STRICT, *scenarios, "-o", built / "scenarios_tsan")
    (built / "tried.c").write_text(TRIED)
    do_run(gcc, include, built / "tried.c", source, "-ldl", "-lpthread", "-o", built / "tried")
    return built


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario(scenario: str, folder: Path) -> None:
    do_run(folder / "scenarios", scenario, LD_LIBRARY_PATH=str(folder / "new"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_without_what_c_does_not_define(scenario: str, folder: Path) -> None:
    # Contexts and functions of the fake driver are never given back.
    do_run(folder / "scenarios_asan", scenario, LD_LIBRARY_PATH=str(folder / "new"), ASAN_OPTIONS="detect_leaks=0")


def test_threads_do_not_race(folder: Path) -> None:
    do_run(folder / "scenarios_tsan", "threads", LD_LIBRARY_PATH=str(folder / "new"))


@pytest.mark.parametrize("scenario", ["launches", "capture", "failures"])
def test_a_driver_that_cannot_load_functions_early(scenario: str, folder: Path) -> None:
    do_run(folder / "scenarios", scenario, LD_LIBRARY_PATH=str(folder / "old"), OLD_DRIVER="1")


def test_no_driver(folder: Path) -> None:
    said = do_run(folder / "tried", LD_LIBRARY_PATH=str(folder))
    assert said.startswith("7 no CUDA driver, or one that is too old driven: the CUDA driver cannot be loaded: libcuda")


def test_a_driver_that_is_too_old(folder: Path) -> None:
    said = do_run(folder / "tried", LD_LIBRARY_PATH=str(folder / "very_old"))
    assert said.startswith("7 no CUDA driver, or one that is too old driven: the CUDA driver has no cuGetErrorString")
