"""Cases that xgpu and libraries compute, side by side: compiled first, compared, and timed by their kernels on the GPU.

Times are of kernels alone, as CUPTI has them, so neither what frameworks do before a launch counts nor the launch.
Operands are as the call before left them: in the L2 cache where they fit. Numbers are normal and random.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xgpu
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.parallel import compile_each
from xgpu.interface.api import Compiled, compile_to
from xgpu.tools import kernel_timing
from xgpu.tools.timing.queued import chosen, compile_all, executable, has_gpu, problem
from xgpu.tools.timing.torch_processes import TorchProcesses

OURS = "ours"
TORCH = "torch"
PEAK = 989e12
"""Operations of 16-bit floats in a second, of the data sheet of an H100 or H200."""

_DRAWN = 4194301
"""Random numbers, a prime number of them, that are repeated for all arrays."""
_COMPARED = 1 << 18
"""Elements of a result that are compared, about, equally far apart."""
_LEAST_SECONDS, _MOST_CALLS = 0.02, 20
_LONG = 3e-4
"""Seconds of kernels beside which launches cost nothing."""


@dataclass(frozen=True)
class Case:
    """A function of ours, and ``others`` that compute the same from the same operands, by name.

    Results are right if no element is farther from those of the first of the others than ``tolerance`` times the
    largest one. Matrices are ``scaled`` such that products of square ones have numbers of the size of 1. ``torch`` is
    what a case of `torch_worker` says besides its name; by names of columns, as several modes of torch may be compared.
    """

    name: str
    function: Callable[..., Any]
    specs: tuple[jax.ShapeDtypeStruct, ...]
    others: Mapping[str, Callable[..., Any]]
    options: xgpu.Options | None = None
    tolerance: float = 0.02
    scaled: bool = True
    torch: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def planned(self) -> Compiled:
        """Return our program; no kernel is compiled yet."""
        options = self.options or xgpu.Options()
        return compile_to(None, self.function, self.specs, device(DEFAULT_DEVICE), options)

    def draw(self) -> list[Any]:
        """Return operands."""
        values = np.random.default_rng(0).standard_normal(_DRAWN).astype(np.float32)
        return [jnp.asarray(self._drawn(np.roll(values, 1009 * n), each)) for n, each in enumerate(self.specs)]

    def _drawn(self, values: Any, spec: jax.ShapeDtypeStruct) -> Any:
        kind = np.dtype(spec.dtype)
        if kind == np.bool_:
            few = values > -1.28
        elif jnp.issubdtype(kind, jnp.integer):
            few = np.clip(np.rint(40 * values), -127, 127).astype(kind)
        else:
            scale = spec.shape[-2] ** -0.25 if self.scaled and len(spec.shape) >= 2 else 1.0
            few = (values * scale).astype(kind)
        return np.resize(few, spec.shape)


@dataclass
class Row:
    """The microseconds of a case by name, and the difference of our results, relative to the largest element."""

    name: str
    us: dict[str, float] = field(default_factory=dict)
    difference: float = math.nan
    is_right: bool = False
    same_bits: bool = False
    kernels: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)

    def ratio(self, *others: str) -> float:
        """Return our speed over that of the fastest of the others that are known; not a number if none is."""
        known = [self.us[each] for each in others if each in self.us]
        return min(known) / self.us[OURS] if known and OURS in self.us else math.nan

    @property
    def emitters(self) -> str:
        """Our kernels' emitters, each once with its number."""
        counts = {each: self.kernels.count(each) for each in self.kernels}
        return "+".join(each if count == 1 else f"{count} {each}" for each, count in counts.items()) or "XLA"

    @property
    def remarks(self) -> str:
        """The end of a line: the difference, whether it is small, notes, and kernels."""
        verdict = "ok" if self.is_right else "-" if math.isnan(self.difference) and OURS in self.us else "WRONG"
        return "  ".join([f"{verdict:5} {self.difference:8.1e}", self.emitters, *self.notes])


@dataclass(frozen=True)
class Limits:
    """The seconds of a run: libraries compile for ``compiling`` at most, and no case begins after ``all``."""

    compiling: float = 55.0
    all: float = 100.0


def select(tool: str, cases: Sequence[Case], words: Sequence[str]) -> list[Case]:
    """Return the cases that words choose; says so if there are none."""
    wanted = [each for each in cases if chosen(each.name, words)]
    if not wanted:
        print(f"{tool}: error: no case has a name with one of: {', '.join(words)}", file=sys.stderr)
    return wanted


def measure(
    cases: Sequence[Case], rounds: int, tell: Callable[[Row], None] = lambda row: None, limits: Limits = Limits()
) -> list[Row]:
    """Compile all cases and measure one after the other; ``tell`` is called after each. Nothing that fails stops it."""
    start = time.perf_counter()
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        for who, given in case.torch.items():
            groups.setdefault(f"{given['program']} {who}", []).append({"name": f"{who}: {case.name}"} | dict(given))
    with TorchProcesses(groups, limits.compiling) as processes:
        programs, made = _compile(cases, start + limits.compiling)
        print(f"compiled {len(made)} functions in {time.perf_counter() - start:.0f} s", flush=True)
        processes.wait()
        of_torch = processes.measure(max(15.0, limits.all - 40 - (time.perf_counter() - start)))
    print(f"torch measured after {time.perf_counter() - start:.0f} s", flush=True)
    rows = []
    for case in cases:
        row = Row(case.name)
        if case.name in programs:
            row.kernels = tuple(each.emitter for each in programs[case.name].kernels)
        _take_torch(row, case, of_torch)
        if time.perf_counter() - start > limits.all:
            row.notes.append(f"not measured: {limits.all:.0f} s were over")
        else:
            _measure(row, case, {who: made[key] for who, key in _keys(case).items() if key in made}, rounds)
        rows.append(row)
        tell(row)
    return rows


def _keys(case: Case) -> dict[str, str]:
    return {who: f"{who}: {case.name}" for who in (OURS, *case.others)}


def _compile(cases: Sequence[Case], end: float) -> tuple[dict[str, Compiled], dict[str, Any]]:
    """Return our programs by the names of cases, and all executables; the libraries' that are begun in time."""

    def within(function: Callable[..., Any], specs: Sequence[jax.ShapeDtypeStruct]) -> Any:
        if time.perf_counter() > end:
            raise TimeoutError("no time was left to compile it")
        return executable(function, specs)

    theirs = {
        f"{who}: {case.name}": partial(within, function, case.specs)
        for case in cases
        for who, function in case.others.items()
    }
    with ThreadPoolExecutor(1) as aside:
        compiling = aside.submit(compile_all, theirs, threads=2)
        programs = _programs(cases)
        ours = {f"{OURS}: {case.name}": (case, programs[case.name]) for case in cases if case.name in programs}
        makers = {key: partial(executable, program, case.specs) for key, (case, program) in ours.items()}
        made = compile_all(makers, threads=8)
        return programs, made | compiling.result()


def _programs(cases: Sequence[Case]) -> dict[str, Compiled]:
    """Return our programs, whose kernels are compiled in several processes; prints why others cannot be."""
    programs = compile_all({case.name: case.planned for case in cases}, threads=1)
    kernels = [kernel for program in programs.values() for kernel in program.kernels]
    failed = dict(compile_each(kernels, "ptx", 1))
    for name, program in list(programs.items()):
        if errors := [failed[kernel] for kernel in program.kernels if kernel in failed]:
            print(f"{name}: FAILED: {problem(errors[0])}", flush=True)
            del programs[name]
    return programs


def _take_torch(row: Row, case: Case, found: Mapping[str, Mapping[str, Any]]) -> None:
    for who in case.torch:
        one = found.get(f"{who}: {case.name}", {})
        if "us" in one:
            row.us[who] = one["us"]
            if one["by"] != "kernels":
                row.notes.append(f"{who} by {one['by']}")


def _measure(row: Row, case: Case, functions: Mapping[str, Any], rounds: int) -> None:
    """Add times and the difference to a row; a function that fails is left out."""
    try:
        operands = case.draw()
    except Exception as error:
        row.notes.append(f"no operands: {problem(error)}")
        return
    results: dict[str, list[Any]] = {}
    for who, function in functions.items():
        try:
            results[who] = _sample(function(*operands))
            if who == OURS:
                again = _sample(function(*operands))
                row.same_bits = all(a.tobytes() == b.tobytes() for a, b in zip(results[who], again, strict=True))
        except Exception as error:
            row.notes.append(f"{who} FAILED: {problem(error)}")
    if OURS in results and (wanted := next((results[who] for who in case.others if who in results), None)):
        row.difference = max(map(difference, results[OURS], wanted))
        row.is_right = row.difference <= case.tolerance
    times: dict[str, list[float]] = {who: [] for who in results}
    for _ in range(rounds):
        for who in list(times):
            try:
                seconds, by = _seconds(functions[who], operands)
            except Exception as error:
                row.notes.append(f"{who} FAILED: {problem(error)}")
                del times[who]
                continue
            times[who] += seconds
            if by and f"{who} {by}" not in row.notes:
                row.notes.append(f"{who} {by}")
    row.us |= {who: statistics.median(each) * 1e6 for who, each in times.items()}


def _sample(results: Any) -> list[Any]:
    """Return elements of all results that are equally far apart."""
    flat = (np.asarray(each).reshape(-1) for each in jax.tree.leaves(kernel_timing.wait(results)))
    return [each[:: max(1, each.size // _COMPARED) | 1] for each in flat]


def difference(found: Any, wanted: Any) -> float:
    """Return the largest difference, of the largest element; infinite for what is no number, in either."""
    found, wanted = np.asarray(found).astype(np.float64), np.asarray(wanted).astype(np.float64)
    if found.shape != wanted.shape or not (np.isfinite(found).all() and np.isfinite(wanted).all()):
        return math.inf
    return float(np.max(np.abs(found - wanted)) / max(1e-30, float(np.max(np.abs(wanted)))))


def _seconds(function: Callable[..., Any], operands: Sequence[Any]) -> tuple[list[float], str]:
    """Return the times of calls; by the clock, which is said then, where no kernel is seen."""
    start = time.perf_counter()
    kernel_timing.wait(function(*operands))
    once = time.perf_counter() - start
    calls = max(3, min(_MOST_CALLS, int(_LEAST_SECONDS / max(once, 1e-6))))
    found = kernel_timing.kernel_seconds(function, operands, calls)
    clock = kernel_timing.seconds_per_call(function, operands) if not found or sum(found) > _LONG * len(found) else 0.0
    if not found:
        return [clock], "by the clock"
    # Long kernels leave no time for anything else: were some not seen, or some counted twice?
    is_plausible = not clock or 0.8 < statistics.median(found) / clock < 1.2
    return found, "" if is_plausible else f"by the clock {clock * 1e6:.0f}"


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean of those that are numbers; not a number if none is."""
    known = [math.log(each) for each in values if each > 0]
    return math.exp(sum(known) / len(known)) if known else math.nan


def cell(value: float, width: int, digits: int = 1) -> str:
    """Return a number of a table, a dash for what is not known."""
    return f"{'-':>{width}}" if math.isnan(value) else f"{value:{width}.{digits}f}"


def started(tool: str) -> bool:
    """Return whether there is a GPU, and say what times are."""
    if not has_gpu(tool):
        return False
    print("times of kernels on the GPU by CUPTI, without launches; normal random numbers; medians", flush=True)
    return True
