"""Runs kernels on tiles on a GPU under compute-sanitizer: memcheck, racecheck and synccheck, a line for each.

Each case and tool is a process, several beside each other, which compares results with XLA's of the CPU, too. A case is
a program that is all kernels, so nothing else is looked at.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from xgpu.tools.sanitize.cases import CASES, run_one
from xgpu.tools.timing.queued import chosen, problem

TOOLS: dict[str, tuple[str, ...]] = {
    # XLA asks CUDA what may not be there, which is no fault of a kernel.
    "memcheck": ("--report-api-errors", "no"),
    "racecheck": (),
    "synccheck": (),
}
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard).*")
_CUDA = Path("/usr/local/cuda/bin")


def verdict(output: str, code: int) -> tuple[str, bool]:
    """Return what the output of a process under the sanitizer says, and whether nothing is wrong."""
    results = re.search(r"^results (ok|WRONG) \S+", output, re.M)
    said = results[0] if results else f"no results, exit code {code}"
    summaries = list(_SUMMARY.finditer(output))
    if not summaries:
        last = [line for line in output.splitlines() if line.strip()][-3:]
        return " | ".join([said, "no summary", *last])[:600], False
    errors = int(summaries[-1][1])
    clean = errors == 0 and results is not None and results[1] == "ok"
    reports = [line.strip("= ") for line in output.splitlines() if line.startswith("=========")]
    shown = [line for line in reports if line and "SUMMARY" not in line and "COMPUTE-SANITIZER" not in line]
    return " | ".join([said, summaries[-1][0], *(shown[:4] if errors or not results else [])])[:900], clean


def _sanitizer() -> str | None:
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=str(_CUDA))


def _run(command: Sequence[str], limit: float) -> tuple[str, bool]:
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
        )
    except OSError as error:
        return problem(error), False
    with process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            # The program is a process of the sanitizer's, and has the same output.
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return f"more than {limit:.0f} s; {verdict(output, process.returncode)[0]}", False
    return verdict(output, process.returncode)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("sanitize", description=__doc__)
    parser.add_argument("words", nargs="*", help="run only cases whose name contains one of these")
    parser.add_argument("--tools", default=",".join(TOOLS), help="of compute-sanitizer; all of these if left out")
    parser.add_argument("--jobs", type=int, choices=range(1, 65), default=12, metavar="N", help="processes; 12")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds of one process; 90")
    parser.add_argument("--seconds", type=float, default=100.0, help="begin no process after this time; 100")
    parser.add_argument("--one", choices=tuple(CASES), help="run this case without the sanitizer")
    parser.add_argument("--on", choices=("gpu", "host"), default="gpu", help="where it runs, with --one")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases whose names the words given choose under each tool; returns 1 if one is not clean."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.one:
        print(run_one(arguments.one, arguments.on), flush=True)
        return 0
    tools = arguments.tools.split(",")
    if unknown := [each for each in tools if each not in TOOLS]:
        parser.error(f"--tools: expected some of {', '.join(TOOLS)}, got {unknown[0]!r}")
    names = [name for name in CASES if chosen(name, arguments.words)]
    if not names:
        parser.error(f"no case has a name with one of: {', '.join(arguments.words)}")
    if (sanitizer := _sanitizer()) is None:
        print("sanitize: error: compute-sanitizer is not installed", file=sys.stderr)
        return 1
    start = time.monotonic()

    def sanitized(pair: tuple[str, str]) -> bool:
        tool, name = pair
        if time.monotonic() - start > arguments.seconds:
            print(f"{name:24} {tool:10} NOT RUN: {arguments.seconds:.0f} s were over", flush=True)
            return False
        begin = time.monotonic()
        python = [sys.executable, "-m", "xgpu.tools.sanitize", "--one", name]
        options = ["--tool", tool, *TOOLS[tool], "--target-processes", "application-only"]
        said, clean = _run([sanitizer, *options, *python], arguments.limit)
        seconds = time.monotonic() - begin
        print(f"{name:24} {tool:10} {'clean' if clean else 'NOT CLEAN':9} {seconds:4.0f} s  {said}", flush=True)
        return clean

    pairs = [(tool, name) for name in names for tool in tools]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = list(pool.map(sanitized, pairs))
    print(f"{sum(found)} of {len(found)} clean in {time.monotonic() - start:.0f} s")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
