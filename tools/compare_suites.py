"""Runs test suites of other projects with ``jax.jit``, then with ``xgpu.jit`` in its place, and lists what differs.

    python -m xgpu.tools.compare_suites ../jax/tests/api_test.py --every 10 --seconds 60

Each run is a pytest process of its own, in which this file is a plugin too: it replaces ``jax.jit``, picks tests, ends
those that take too long, and writes down how each ended, so that a crash costs one test. A function that is left to XLA
with a warning fails its test. The exit status is 1 if a test fails with ``xgpu.jit`` alone.
"""

import argparse
import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_SETTINGS = "XGPU_COMPARED_SUITE"
_DIED = "the process ended"
_STARTED, _PASSED, _SKIPPED = "started", "passed", "skipped"

_NOTICED = 1.0  # seconds: what a test takes less than this longer is noise


class Ended(NamedTuple):
    """The end of a test, ``passed``, ``skipped`` or why it did not pass, and the seconds that it took."""

    outcome: str
    seconds: float

    @property
    def fine(self) -> bool:
        """Whether the test did not fail."""
        return self.outcome in (_PASSED, _SKIPPED)


def _settings() -> Any:
    return json.loads(os.environ[_SETTINGS])


def _read(log: Path) -> dict[str, Ended]:
    """Return how each test ended; one that only began ended the process."""
    ended = {test: Ended(*rest) for test, *rest in map(json.loads, log.read_text().splitlines())}
    return {test: Ended(_DIED, 0.0) if end.outcome == _STARTED else end for test, end in ended.items()}


def _note(test: str, outcome: str, seconds: float = 0.0) -> None:
    with Path(_settings()["log"]).open("a") as log:
        log.write(json.dumps([test, outcome, seconds]) + "\n")


def pytest_configure() -> None:
    """Replace ``jax.jit`` if that is asked for: called by pytest before it imports any test."""
    if _settings()["replaced"]:
        import jax

        import xgpu

        jax.jit = xgpu.jit  # type: ignore[assignment]


def _replace_in_jax_tests() -> None:
    """Replace what JAX's own tests compile functions by (``_CompileAndCheck``), which is not the name ``jax.jit``."""
    utilities: Any = sys.modules.get("jax._src.test_util")
    if _settings()["replaced"] and utilities is not None:
        import xgpu

        utilities.api = types.SimpleNamespace(**vars(utilities.api) | {"jit": xgpu.jit})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each n-th test from the first one asked for, but those that an earlier process ended."""
    _replace_in_jax_tests()
    done = _read(Path(_settings()["log"]))
    items[:] = [item for item in items[_settings()["first"] :: _settings()["every"]] if item.nodeid not in done]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record that a test begins, and end it when its time is over: by an exception, or with the process."""

    def stop(*_: object) -> None:
        raise TimeoutError

    _note(item.nodeid, _STARTED)
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(_settings()["seconds"])
    faulthandler.dump_traceback_later(_settings()["seconds"] + 30, exit=True)
    yield
    signal.alarm(0)
    faulthandler.cancel_dump_traceback_later()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record how a test ended; the reason of a failure is the last line of its message."""
    if report.when == "call" or report.outcome != _PASSED:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = (crash.message.strip().splitlines() or [""])[0] if crash is not None else ""
        outcome = f"{report.outcome}: {reason}" if report.failed else report.outcome
        _note(report.nodeid, outcome, report.duration)


def pytest_warning_recorded(warning_message: warnings.WarningMessage, nodeid: str) -> None:
    """Record that xgpu could not compile a function of a test, which XLA then ran: that is a failure of ours."""
    message = str(warning_message.message)
    if message.startswith("xgpu leaves "):
        _note(nodeid, message.splitlines()[0])


def run(paths: list[str], replaced: bool, every: int, seconds: int, first: int = 0) -> dict[str, Ended]:
    """Run each ``every``-th test of ``paths`` from number ``first`` on, and return how each of them ended."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.touch()
        settings = {"log": str(log), "replaced": replaced, "every": every, "seconds": seconds, "first": first}
        command = [sys.executable, "-m", "pytest", "-p", __spec__.name, "-p", "no:cacheprovider", "-q", "--tb=short"]
        while True:
            before = len(_read(log))
            result = subprocess.run(
                [*command, *paths], env=os.environ | {_SETTINGS: json.dumps(settings)}, capture_output=True, text=True
            )
            ended = _read(log)
            if all(end.outcome != _DIED for end in (*ended.values(),)[before:]):
                if not ended:
                    sys.stderr.write(result.stdout + result.stderr)
                return ended


def slower(theirs: dict[str, Ended], ours: dict[str, Ended], times: float) -> list[tuple[str, float, float]]:
    """Return the tests that pass with both and take over ``times`` as long with ours, with both times in seconds."""
    both = [(test, theirs[test].seconds, end.seconds) for test, end in ours.items() if test in theirs and end.fine]
    slow = [(test, before, after) for test, before, after in both if after > max(times * before, before + _NOTICED)]
    return sorted(slow, key=lambda found: found[1] - found[2])


def main(arguments: list[str] | None = None) -> int:
    """Compare the suites that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m xgpu.tools.compare_suites", description="compare test suites")
    parser.add_argument("paths", nargs="+", help="test files or folders, as pytest takes them")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run each N-th test only")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="leave out the first K tests")
    parser.add_argument("--seconds", type=int, default=120, help="time limit of a test")
    parser.add_argument("--slower", type=float, default=10, metavar="X", help="list tests over X times slower")
    given = parser.parse_args(arguments)
    theirs, ours = (run(given.paths, replaced, given.every, given.seconds, given.first) for replaced in (False, True))
    only = {test: end for test, end in ours.items() if not end.fine and test in theirs and theirs[test].fine}
    for test, end in only.items():
        print(f"{test}: {end.outcome}")
    for test, before, after in slower(theirs, ours, given.slower):
        print(f"{test}: {after:.1f} s, {before:.1f} s with jax.jit")
    failed = [sum(not end.fine for end in ends.values()) for ends in (theirs, ours)]
    print(f"{len(theirs)} tests: {failed[0]} fail with jax.jit, {failed[1]} with xgpu.jit, {len(only)} with that alone")
    return 1 if only or not theirs else 0


if __name__ == "__main__":
    sys.exit(main())
