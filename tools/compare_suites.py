"""Runs test suites of other projects with ``jax.jit``, then with ``xgpu.jit`` in its place, and lists what differs.

    python -m xgpu.tools.compare_suites ../jax/tests/api_test.py --every 10 --seconds 60

Each run is a pytest process of its own, in which this file is a plugin too: it replaces ``jax.jit``, picks tests, ends
those that take too long, and writes down how each ended, so that a crash costs one test. The exit status is 1 if a test
fails with ``xgpu.jit`` alone.
"""

import argparse
import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SETTINGS = "XGPU_COMPARED_SUITE"
_DIED = "the process ended"
_STARTED, _PASSED, _SKIPPED = "started", "passed", "skipped"


def _settings() -> Any:
    return json.loads(os.environ[_SETTINGS])


def _read(log: Path) -> dict[str, str]:
    """Return how each test ended; one that only began ended the process."""
    ended = dict(json.loads(line) for line in log.read_text().splitlines())
    return {test: _DIED if outcome == _STARTED else outcome for test, outcome in ended.items()}


def _note(test: str, outcome: str) -> None:
    with Path(_settings()["log"]).open("a") as log:
        log.write(json.dumps([test, outcome]) + "\n")


def pytest_configure() -> None:
    """Replace ``jax.jit`` if that is asked for: called by pytest before it imports any test."""
    if _settings()["replaced"]:
        import jax

        import xgpu

        jax.jit = xgpu.jit  # type: ignore[assignment]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each n-th test, but those that an earlier process ended."""
    done = _read(Path(_settings()["log"]))
    items[:] = [item for item in items[:: _settings()["every"]] if item.nodeid not in done]


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
        _note(report.nodeid, f"{report.outcome}: {reason}" if report.failed else report.outcome)


def run(paths: list[str], replaced: bool, every: int, seconds: int) -> dict[str, str]:
    """Run the tests of ``paths`` and return how each of them ended: ``passed``, ``skipped``, or why it did not pass."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.touch()
        settings = {"log": str(log), "replaced": replaced, "every": every, "seconds": seconds}
        command = [sys.executable, "-m", "pytest", "-p", __spec__.name, "-p", "no:cacheprovider", "-q", "--tb=short"]
        while True:
            before = len(_read(log))
            result = subprocess.run(
                [*command, *paths], env=os.environ | {_SETTINGS: json.dumps(settings)}, capture_output=True, text=True
            )
            ended = _read(log)
            if _DIED not in (*ended.values(),)[before:]:
                if not ended:
                    sys.stderr.write(result.stdout + result.stderr)
                return ended


def main(arguments: list[str] | None = None) -> int:
    """Compare the suites that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m xgpu.tools.compare_suites", description="compare test suites")
    parser.add_argument("paths", nargs="+", help="test files or folders, as pytest takes them")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run each N-th test only")
    parser.add_argument("--seconds", type=int, default=120, help="time limit of a test")
    given = parser.parse_args(arguments)
    theirs, ours = (run(given.paths, replaced, given.every, given.seconds) for replaced in (False, True))
    fine = (_PASSED, _SKIPPED)
    only = {test: why for test, why in ours.items() if why not in fine and theirs.get(test) in fine}
    for test, why in only.items():
        print(f"{test}: {why}")
    failed = [sum(why not in fine for why in outcomes.values()) for outcomes in (theirs, ours)]
    print(f"{len(theirs)} tests: {failed[0]} fail with jax.jit, {failed[1]} with xgpu.jit, {len(only)} with that alone")
    return 1 if only or not theirs else 0


if __name__ == "__main__":
    sys.exit(main())
