"""Compares ``xgpu.jit`` with ``jax.jit`` on the programs of a Python file, each in a process with a time limit.

The file has a dictionary ``PROGRAMS`` from names to functions without arguments, each of which returns a function and
its arguments. First calls run beside each other; while one program is measured, the others stand still, which counts
neither as a part of their first calls nor towards their limits. What was found is a line of JSON for each program in
the file given by ``--out``; the table that is printed has the slowest first.
"""

import argparse
import contextlib
import fcntl
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

import xgpu
from xgpu.tools import kernel_timing


def main(argv: Sequence[str] | None = None) -> int:
    """Run programs and print the table; returns 1 if one fails only under ``xgpu.jit``."""
    parser = argparse.ArgumentParser("programs", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path, help="a Python file with a dictionary PROGRAMS")
    parser.add_argument("words", nargs="*", help="run only programs whose name contains one of these")
    parser.add_argument(
        "--limit",
        type=float,
        default=60.0,
        help="seconds that one program may take, without those in which it stands still; 60 if left out",
    )
    parser.add_argument("--deadline", type=float, default=500.0, help="seconds after which no program is begun")
    parser.add_argument("--jobs", type=int, default=8, help="processes at one time; 8 if left out")
    parser.add_argument("--out", type=Path, default=Path("programs.jsonl"), help="where results go, as lines of JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.one:
        print(json.dumps(_measure(arguments.one, _programs(arguments.file)[arguments.one], arguments.folder)))
        return 0
    words = arguments.words or [""]
    try:
        names = [name for name in _programs(arguments.file) if any(word in name for word in words)]
    except ValueError as error:
        parser.error(str(error))
    if not names:
        parser.error(f"no program has a name with one of: {', '.join(words)}")
    end = time.monotonic() + arguments.deadline
    jobs, lines = ThreadPoolExecutor(arguments.jobs), arguments.out.open("w")
    with tempfile.TemporaryDirectory() as folder, jobs as pool, lines as out:
        command = [sys.executable, "-m", "xgpu.tools.timing.programs", str(arguments.file), "--folder", folder]

        def run(name: str) -> dict[str, Any]:
            found = _run(name, [*command, "--one", name], arguments.limit, end, Path(folder))
            _signal_all(Path(folder), signal.SIGCONT)
            out.write(json.dumps(found) + "\n")
            out.flush()
            return found

        results = list(pool.map(run, names))
    _print(results)
    return 1 if any(found.get("fault") == "xgpu" for found in results) else 0


def _programs(path: Path) -> dict[str, Callable[[], tuple[Callable[..., Any], Sequence[Any]]]]:
    """Return the programs of a file. Raises ValueError with what is wrong with the file."""
    try:
        programs = runpy.run_path(str(path)).get("PROGRAMS")
    except Exception as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
    if not isinstance(programs, dict) or not programs or not all(map(callable, programs.values())):
        raise ValueError(f"{path}: expected a dictionary PROGRAMS of functions, got {type(programs).__name__}")
    return programs


def _run(name: str, command: list[str], limit: float, end: float, folder: Path) -> dict[str, Any]:
    """Return what a process found out about a program, or why it did not."""
    if time.monotonic() > end:
        return {"name": name, "error": "not begun: the deadline was over"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        start, left = time.monotonic(), limit
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said, wrong = process.communicate(timeout=left)
                    break
                if (left := limit - _running(folder, process.pid, start)) <= 0:
                    process.kill()
                    stage = [line for line in process.communicate()[1].splitlines() if line.startswith("stage ")]
                    return {"name": name, "error": f"more than {limit:g} s in {stage[-1] if stage else 'its import'}"}
        finally:
            # Its number may be that of another process from now on.
            (folder / str(process.pid)).unlink(missing_ok=True)
            _end_span(folder, process.pid)
    lines = said.splitlines()
    if process.returncode == 0 and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    return {"name": name, "error": f"exit code {process.returncode}: {wrong[-2000:]}"}


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Have the processes of all other programs stand still: each has a file of its number in the folder."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (folder / f"alone.{os.getpid()}").write_text(f"{time.monotonic()}")
        _signal_all(folder, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal_all(folder, signal.SIGCONT)
            _end_span(folder, os.getpid())


def _end_span(folder: Path, process: int) -> None:
    """Note when a process was measured, if it was: from then on the others run."""
    alone = folder / f"alone.{process}"
    if alone.exists():
        with (folder / "spans").open("a") as file:
            file.write(f"{alone.read_text()} {time.monotonic()}\n")
        alone.unlink()


def _running(folder: Path, process: int, start: float) -> float:
    """Return the seconds since ``start`` in which a process did not stand still."""
    now = time.monotonic()
    ends: dict[float, float] = {}
    for alone in folder.glob("alone.*"):
        with contextlib.suppress(OSError, ValueError):
            if alone.suffix != f".{process}":
                ends[float(alone.read_text())] = now
    if (spans := folder / "spans").exists():
        ends |= {float(begin): float(end) for begin, end in map(str.split, spans.read_text().splitlines())}
    return now - start - sum(max(0.0, end - max(begin, start)) for begin, end in ends.items())


def _signal_all(folder: Path, number: signal.Signals) -> None:
    """Send a signal to the processes that have a file in the folder, except to this one."""
    for process in folder.glob("[0-9]*"):
        if int(process.name) != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process.name), number)


def _measure(name: str, make: Callable[[], tuple[Callable[..., Any], Sequence[Any]]], folder: Path) -> dict[str, Any]:
    """Return first calls in seconds, calls in microseconds, the ratio of speeds, and how far results are apart."""
    process = folder / str(os.getpid())
    process.touch()
    try:
        return _compare(name, make, folder)
    finally:
        process.unlink()


def _compare(name: str, make: Callable[[], tuple[Callable[..., Any], Sequence[Any]]], folder: Path) -> dict[str, Any]:
    """Return the same, in a process that is known to the others."""
    function, given = make()
    found: dict[str, Any] = {"name": name}
    functions: dict[str, Callable[..., Any]] = {"jax": jax.jit(function), "xgpu": xgpu.jit(function)}
    results: dict[str, Any] = {}
    for kind, compiled in functions.items():
        print(f"stage {kind}: first call", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            results[kind] = [np.asarray(each) for each in jax.tree.leaves(kernel_timing.wait(compiled(*given)))]
        except Exception as error:
            return found | {"error": f"{kind}: {type(error).__name__}: {str(error)[-1500:]}", "fault": kind}
        found[f"{kind}_first"] = _running(folder, os.getpid(), start)
    found["difference"] = max((_difference(*pair) for pair in zip(*results.values(), strict=True)), default=0.0)
    with _alone(folder):
        arguments = jax.device_put(list(given))
        found |= {f"{kind}_us": 1e6 * seconds for kind, seconds in _times(functions, arguments).items()}
        found["ratio"] = found["jax_us"] / found["xgpu_us"]
        found |= {f"{kind}_kernels": _kernels(compiled, arguments) for kind, compiled in functions.items()}
        found |= {f"{kind}_device_us": sum(each[2] for each in found[f"{kind}_kernels"]) for kind in functions}
    return found


def _times(functions: dict[str, Callable[..., Any]], arguments: Sequence[Any]) -> dict[str, float]:
    """Return the seconds of a call of each: the median of up to nine measurements of some 5 ms, in turn."""
    calls = {}
    for kind, function in functions.items():
        kernel_timing.wait(function(*arguments))
        start = time.perf_counter()
        kernel_timing.wait(function(*arguments))
        calls[kind] = max(1, min(50, int(0.005 / (time.perf_counter() - start))))
    samples: dict[str, list[float]] = {kind: [] for kind in functions}
    end = time.perf_counter() + 3.0
    for _ in range(9):
        for kind, function in functions.items():
            start = time.perf_counter()
            kernel_timing.wait([function(*arguments) for _ in range(calls[kind])])
            samples[kind].append((time.perf_counter() - start) / calls[kind])
        if time.perf_counter() > end:
            break
    return {kind: float(np.median(each)) for kind, each in samples.items()}


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest distance between two arrays over the second's largest number; infinite for NaNs of one."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if not ours.size or (ours.dtype.kind not in "fc" and ours.dtype.name not in ("bfloat16", "float16")):
        return 0.0 if np.array_equal(ours, theirs) else 1.0
    kind = np.complex128 if ours.dtype.kind == "c" else np.float64
    first, second = ours.astype(kind), theirs.astype(kind)
    if not np.array_equal(np.isnan(first), np.isnan(second)):
        return float("inf")
    is_number = np.isfinite(second) & np.isfinite(first)
    if not np.array_equal(first[~is_number], second[~is_number], equal_nan=True):
        return float("inf")
    largest = np.max(np.abs(second[is_number]), initial=0.0)
    return float(np.max(np.abs(first - second)[is_number], initial=0.0) / max(float(largest), 1e-30))


def _kernels(function: Callable[..., Any], arguments: Sequence[Any]) -> list[tuple[str, int, float]]:
    """Return the kernels of one call by time: their names, how many times each ran, and microseconds in all."""
    spent: dict[str, tuple[int, float]] = {}
    for event in kernel_timing.kernel_events(function, arguments, 1):
        count, time_ = spent.get(event.name, (0, 0.0))
        spent[event.name] = (count + 1, time_ + event.duration_ns / 1e3)
    return sorted(((name[:100], *value) for name, value in spent.items()), key=lambda each: -each[2])[:25]


_TIMES = {"xgpu_us": 11, "jax_us": 11, "xgpu_device_us": 11, "jax_device_us": 9}
"""The times of a line of the table in microseconds, and their widths: those of calls, and of kernels on the GPU."""


def _print(results: Sequence[dict[str, Any]]) -> None:
    """Print a line for each program, the slowest first, those that failed last, and the geometric mean."""
    timed = sorted((found for found in results if "ratio" in found), key=lambda found: float(found["ratio"]))
    print(f"{'':48}{'ratio':>7}{'ours us':>11}{'XLA us':>11}{'on the GPU':>20}{'difference':>12}{'first calls, s':>16}")
    for found in timed:
        first = f"{found['xgpu_first']:8.2f}{found['jax_first']:8.2f}"
        times = "".join(f"{found[key]:{width}.1f}" for key, width in _TIMES.items())
        print(f"{found['name']:48}{found['ratio']:7.2f}{times}{found['difference']:12.1e}{first}")
    for found in results:
        if "ratio" not in found:
            print(f"{found['name']:48} {found['error'][-300:]}")
    if timed:
        mean = float(np.exp(np.mean([np.log(found["ratio"]) for found in timed])))
        # A call may have stood still for all of its time, which does not count.
        firsts = [found["xgpu_first"] / found["jax_first"] for found in timed if found["jax_first"] > 0]
        first = f", first calls {np.median(firsts):.2f} (median)" if firsts else ""
        print(f"{len(timed)} programs: geometric mean {mean:.2f}{first}")


if __name__ == "__main__":
    sys.exit(main())
