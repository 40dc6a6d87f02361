"""The comparison of suites: which tests it runs, and which failures and times it lists."""

from pathlib import Path

from xgpu.tools.compare_suites import Ended, main, run, slower

SUITE = """
import jax
import pytest


@pytest.mark.parametrize("case", range(6))
def test_case(case):
    assert jax.jit.__module__.startswith("jax") or case != 4
"""


def _suite(folder: Path) -> str:
    path = folder / "test_suite.py"
    path.write_text(SUITE)
    return str(path)


def _cases(ended: dict[str, Ended]) -> list[str]:
    return [test.split("::")[1] for test in ended]


def test_each_nth_test_from_the_first_asked_for_runs(tmp_path):
    """Samples of one distance and other starts share no test."""
    ended = run([_suite(tmp_path)], replaced=False, every=3, seconds=60, first=1)
    assert _cases(ended) == ["test_case[1]", "test_case[4]"]
    assert all(end.fine and end.seconds >= 0 for end in ended.values())


def test_a_failure_with_xgpu_alone_is_listed(tmp_path, capsys):
    """The status says it too."""
    assert main([_suite(tmp_path), "--every", "2"]) == 1
    *listed, total = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0].split("::")[1] for line in listed if "failed" in line] == ["test_case[4]"]
    assert total == "3 tests: 0 fail with jax.jit, 1 with xgpu.jit, 1 with that alone"


JAX_SUITE = """
from jax._src import test_util


class CompiledTest(test_util.JaxTestCase):
    def test_compiled(self):
        assert test_util.api.jit.__module__.startswith("jax")
        assert test_util.api.grad(lambda x: x)(1.0) == 1.0
"""


def test_what_jaxs_own_tests_compile_with_is_replaced(tmp_path):
    """They call the function of an inner module of JAX."""
    path = tmp_path / "test_jax.py"
    path.write_text(JAX_SUITE)
    theirs, ours = (run([str(path)], replaced, every=1, seconds=60) for replaced in (False, True))
    assert [end.fine for end in theirs.values()] == [True]
    assert [end.fine for end in ours.values()] == [False]


LEFT_SUITE = """
import warnings


def test_left():
    warnings.warn("xgpu leaves f to XLA after an internal error: why\\nand where")


def test_compiled():
    warnings.warn("another")
"""


def test_what_is_left_to_xla_with_a_warning_fails(tmp_path):
    """It runs as with jax.jit, so nothing else tells."""
    path = tmp_path / "test_left.py"
    path.write_text(LEFT_SUITE)
    left, compiled = run([str(path)], replaced=True, every=1, seconds=60).values()
    assert left.outcome == "xgpu leaves f to XLA after an internal error: why"
    assert compiled.fine


def test_slower_tests_are_listed_slowest_first():
    """Times that differ by less than a second, and tests that fail, are not."""
    theirs = {name: Ended("passed", 0.5) for name in ("a", "b", "noise", "failing")}
    ours = {"a": Ended("passed", 6.0), "b": Ended("passed", 9.0), "noise": Ended("passed", 1.4)}
    ours["failing"] = Ended("failed: why", 9.0)
    assert slower(theirs, ours, 10) == [("b", 0.5, 9.0), ("a", 0.5, 6.0)]
