"""Kernels of attention whose schedules a command line gives, side by side: the tool `attention` with ``--schedule``.

All are compiled in several processes before the first is measured.
"""

import argparse
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import xgpu
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.parallel import compile_each
from xgpu.errors import XgpuError
from xgpu.interface.api import Compiled, compile_to
from xgpu.tools import kernel_timing
from xgpu.tools.timing.queued import compile_all, executable, problem

_NUMBER = re.compile(r"([a-z_]+)=(true|false|\d+)")
_CHOSEN = "as chosen"
_OTHER = "cuDNN"


class Timed(Protocol):
    """A case of attention."""

    @property
    def name(self) -> str:
        """The case's name."""

    @property
    def specs(self) -> Sequence[Any]:
        """The operands."""

    @property
    def tflop(self) -> float:
        """The operations that have to be computed, in units of 10^12 operations."""

    def function(self, q: Any, k: Any, v: Any) -> Any:
        """Compute attention."""

    def draw(self) -> list[Any]:
        """Return operands."""

    def error(self, found: Any, operands: Sequence[Any]) -> float:
        """Return the largest error of some rows, in roundings."""


@dataclass(frozen=True)
class Given:
    """Numbers of a schedule for cases whose names have a ``word``; the others are as they are chosen."""

    text: str
    word: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Given":
        """Return the numbers of a text such as ``of 256: reuse=true,tile_n=80``."""
        word, _, numbers = text.rpartition(":")
        found = [_NUMBER.fullmatch(part.strip()) for part in numbers.split(",")]
        if None in found:
            raise argparse.ArgumentTypeError(f"expected [word:] name=number or name=true, ..., got {text!r}")
        words = {"true": True, "false": False}
        values = {each[1]: words[each[2]] if each[2] in words else int(each[2]) for each in found if each is not None}
        return cls(numbers.strip(), word.strip(), values)


@dataclass(frozen=True)
class Way:
    """A case, and the program with which one of our kernels computes it, or why there is none."""

    case: Timed
    label: str
    program: Compiled | XgpuError

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.case.name}: {self.label}"

    def executable(self) -> Any:
        """Return it as a function that runs on a GPU."""
        if isinstance(self.program, XgpuError):
            raise self.program
        return executable(self.program, self.case.specs)


def ways_of(case: Timed, schedules: Sequence[Given]) -> Iterator[Way]:
    """Yield the kernel as it is chosen, and those of the schedules that are for the case; none is compiled yet."""
    chosen = _planned(case, xgpu.Options())
    yield Way(case, _CHOSEN, chosen)
    names = [each.name for each in chosen.kernels if each.emitter == "attention"]
    for given in schedules:
        if given.word in case.name:
            options = xgpu.Options(schedules={name: dict(given.numbers) for name in names})
            try:
                yield Way(case, given.text, _planned(case, options))
            except XgpuError as error:
                yield Way(case, given.text, error)


def _planned(case: Timed, options: xgpu.Options) -> Compiled:
    return compile_to(None, case.function, case.specs, device(DEFAULT_DEVICE), options)


def compiled_ways(cases: Sequence[Timed], schedules: Sequence[Given]) -> list[Way]:
    """Return the ways to compute all cases whose kernels can be compiled, compiled; prints why others cannot."""
    ways = [way for case in cases for way in ways_of(case, schedules)]
    kernels = [kernel for way in ways if isinstance(way.program, Compiled) for kernel in way.program.kernels]
    failed = dict(compile_each(kernels, "ptx", 1))
    found = []
    for way in ways:
        errors = [way.program] if isinstance(way.program, XgpuError) else []
        if isinstance(way.program, Compiled):
            errors = [failed[kernel] for kernel in way.program.kernels if kernel in failed]
        if errors:
            print(f"{way.name}: FAILED: {problem(errors[0])}", flush=True)
        else:
            found.append(way)
    return found


def print_machine_code(ways: Sequence[Way]) -> int:
    """Print what ptxas says of each kernel; returns how many spill registers or have products done one by one."""
    compile_all({way.name: partial(_assemble, way) for way in ways})
    bad = 0
    for way in ways:
        assert isinstance(way.program, Compiled)
        for kernel in way.program.kernels:
            made = kernel.assembled
            is_bad = bool(made.spill_bytes or made.remarks)
            bad += is_bad
            remarks = f" {' '.join(made.remarks)[:200]}" if made.remarks else ""
            print(
                f"{way.name:90} {kernel.shared_bytes:7} bytes shared, {made.spill_bytes} spilled{remarks}", flush=True
            )
    return bad


def _assemble(way: Way) -> None:
    assert isinstance(way.program, Compiled)
    for kernel in way.program.kernels:
        kernel.assembled  # noqa: B018  # It is made when it is first asked for.


def print_times(ways: Sequence[Way], others: Mapping[str, Any], rounds: int) -> int:
    """Measure the ways of each case beside cuDNN, and print them; returns how many failed.

    ``others`` make what computes each case by cuDNN.
    """
    start = time.perf_counter()
    # Nothing of ours runs on the GPU meanwhile, of which libraries measure what they choose from.
    with ThreadPoolExecutor(1) as pool:
        compiling = pool.submit(compile_all, others, threads=1)
        ours = compile_all({way.name: way.executable for way in ways}, threads=16)
        theirs = compiling.result()
    print(
        f"{len(ours)} of ours and {len(theirs)} of cuDNN for the GPU in {time.perf_counter() - start:.0f} s", flush=True
    )
    failures = len(ways) - len(ours) + len(others) - len(theirs)
    print(f"{'us':70}{'median':>9}{'least':>9}{'x cuDNN':>9}{'TFLOP/s':>9}{'error':>7}", flush=True)
    for case in dict.fromkeys(way.case for way in ways):
        functions = {way.label: ours[way.name] for way in ways if way.case == case and way.name in ours}
        if case.name in theirs:
            functions[_OTHER] = theirs[case.name]
        failures += _print_case(case, functions, rounds)
    return failures


def _print_case(case: Timed, functions: dict[str, Any], rounds: int) -> int:
    """Measure and print one case; a function that fails is left out. Returns how many did."""
    operands, errors, failures = case.draw(), {}, 0
    for label, function in list(functions.items()):
        try:
            errors[label] = case.error(kernel_timing.wait(function(*operands)), operands)
        except Exception as error:
            failures += 1
            del functions[label]
            print(f"{case.name}: {label}: FAILED: {problem(error)}", flush=True)
    times: dict[str, list[float]] = {label: [] for label in functions}
    for number in range(rounds + 1):
        for label, function in functions.items():
            seconds = kernel_timing.seconds_per_call(function, operands)
            if number:  # The first round warms up.
                times[label].append(seconds * 1e6)
    medians = {label: statistics.median(each) for label, each in times.items()}
    print(case.name, flush=True)
    for label in sorted(medians, key=lambda each: medians[each]):
        us = medians[label]
        ratio, rate = medians.get(_OTHER, float("nan")) / us, case.tflop / us * 1e6
        print(f"  {label:68}{us:9.1f}{min(times[label]):9.1f}{ratio:9.3f}{rate:9.0f}{errors[label]:7.2f}", flush=True)
    return failures
