"""Cases that are all compiled first, then compared with XLA's results and timed in turn by calls in a queue."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xgpu
from xgpu.errors import XgpuError
from xgpu.frontend.signature import ArgumentSpec
from xgpu.runtime.jax_backend import gpu_device
from xgpu.tools import kernel_timing

_THREADS = 8
"""Kernels that are compiled at one time."""


@dataclass(frozen=True)
class Case:
    """A kernel, the function of JAX that it is compared with, and how much a call does.

    ``source`` and ``specs`` are what `xgpu.compile` takes. Results are right if no element is farther off than
    ``tolerance`` times the largest one. ``work`` is what a call does in units of 10^12, of which a second has a number
    in the ``unit``; a case without work is not timed. Arguments are normal random numbers; matrices that are
    ``scaled`` have such that a product with another one has numbers of the size of 1.
    """

    name: str
    source: Any
    reference: Callable[..., Any]
    tolerance: float
    work: float = 0.0
    unit: str = "TFLOP/s"
    specs: tuple[str, ...] = ()
    scaled: bool = True

    def compile(self) -> xgpu.Compiled:
        """Return the compiled program."""
        return xgpu.compile(self.source, *self.specs)

    def draw(self, specs: Sequence[ArgumentSpec]) -> list[jax.Array]:
        """Return arguments of a program."""
        values = np.random.default_rng(0)
        found = []
        for spec in specs:
            scale = spec.shape[0] ** -0.25 if self.scaled and len(spec.shape) == 2 else 1.0
            found.append(jnp.asarray(values.standard_normal(spec.shape) * scale, spec.dtype.numpy))
        return found


@dataclass(frozen=True)
class Prepared:
    """A case whose kernel is compiled, and is a function of JAX."""

    case: Case
    program: xgpu.Compiled
    function: Callable[..., Any]

    @classmethod
    def of(cls, case: Case) -> "Prepared":
        """Compile the kernel of a case for the GPU."""
        program = case.compile()
        return cls(case, program, executable(program, structs(program.arguments)))

    def line(self, rounds: int) -> tuple[str, bool]:
        """Return a line of the table, and whether results are right."""
        arguments = self.case.draw(self.program.arguments)
        theirs = executable(self.case.reference, structs(self.program.arguments))
        found, wanted = (np.asarray(each(*arguments), np.float64) for each in (self.function, theirs))
        error = float(np.max(np.abs(found - wanted)) / max(1e-30, float(np.max(np.abs(wanted)))))
        is_right = error <= self.case.tolerance
        emitter = self.program.kernels[0].emitter
        line = f"{self.case.name:56}{emitter:>14}{'ok' if is_right else 'WRONG':>6} {error:9.1e}"
        if self.case.work:
            speeds = kernel_timing.compare(self.function, theirs, arguments, rounds)
            times = f"{speeds.ours * 1e6:10.1f}{speeds.theirs * 1e6:10.1f}{speeds.ratio:8.2f}"
            rates = "".join(f"{self.case.work / each:9.2f}" for each in (speeds.ours, speeds.theirs))
            line = f"{line}{times}{rates} {self.case.unit}"
        return line, is_right


HEAD = f"{'':56}{'emitter':>14}{'':>6} {'error':>9}{'ours us':>10}{'XLA us':>10}{'ratio':>8}{'ours':>9}{'XLA':>9}"
"""The head of a table of such lines; the ratio is that of speeds, ours over XLA's."""


def has_gpu(tool: str) -> bool:
    """Return whether there is a GPU; says so if there is none. Memory is left to others in the process, as torch."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        print(f"device: {gpu_device().device_kind}", flush=True)
    except XgpuError as error:
        print(f"{tool}: error: {error}", file=sys.stderr)
        return False
    return True


def arguments_of(tool: str, description: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of a tool: ``words`` that choose cases, and how many ``rounds`` are measured."""
    return parse(parser_of(tool, description), argv)


def parser_of(tool: str, description: str | None) -> argparse.ArgumentParser:
    """Return what reads these arguments, for a tool that has others beside them."""
    parser = argparse.ArgumentParser(tool, description=description)
    parser.add_argument("words", nargs="*", help="measure only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each, whose median is printed")
    return parser


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of a tool, of which rounds are some."""
    arguments = parser.parse_args(argv)
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error(f"--rounds: expected a number of at least 1, got {arguments.rounds}")
    return arguments


def chosen(name: str, words: Sequence[str]) -> bool:
    """Return whether a case is one that the words choose."""
    return not words or any(word in name for word in words)


def struct(shape: Sequence[int], dtype: Any) -> jax.ShapeDtypeStruct:
    """Return an array as JAX describes it."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)  # type: ignore[no-untyped-call]


def structs(specs: Sequence[ArgumentSpec]) -> list[jax.ShapeDtypeStruct]:
    """Return the arguments of a program as JAX describes them."""
    return [struct(spec.shape, spec.dtype.numpy) for spec in specs]


def executable(function: Callable[..., Any], arguments: Sequence[jax.ShapeDtypeStruct]) -> Callable[..., Any]:
    """Return a function compiled by JAX, a program of ours inside of it."""
    return jax.jit(lambda *given: function(*given)).lower(*arguments).compile()


def compile_all(makers: Mapping[str, Callable[[], Any]], threads: int = _THREADS) -> dict[str, Any]:
    """Return what the functions return, by the same names; prints why there is none of some.

    XLA and libraries measure what they choose from while they compile: one thread is for those.
    """

    def make(name: str) -> Any:
        try:
            return makers[name]()
        except Exception as error:
            print(f"{name}: FAILED: {problem(error)}", flush=True)
            return None

    with ThreadPoolExecutor(threads) as pool:
        made = dict(zip(makers, pool.map(make, makers), strict=True))
    return {name: each for name, each in made.items() if each is not None}


def problem(error: Exception) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"


def measure(tool: str, description: str | None, cases: Sequence[Case], argv: Sequence[str] | None) -> int:
    """Print a table of cases for a command line; returns 1 without a GPU, and if a case fails or is wrong."""
    arguments = arguments_of(tool, description, argv)
    wanted = {each.name: each for each in cases if chosen(each.name, arguments.words)}
    if not wanted:
        print(f"{tool}: error: no case has a name with one of: {', '.join(arguments.words)}", file=sys.stderr)
        return 1
    if not has_gpu(tool):
        return 1
    start = time.perf_counter()
    prepared = compile_all({name: partial(Prepared.of, case) for name, case in wanted.items()})
    print(f"compiled {len(prepared)} kernels in {time.perf_counter() - start:.0f} s\n{HEAD}", flush=True)
    failures = len(wanted) - len(prepared)
    for name, each in prepared.items():
        try:
            line, is_right = each.line(arguments.rounds)
        except Exception as error:
            line, is_right = f"{name}: FAILED: {problem(error)}", False
        failures += not is_right
        print(line, flush=True)
    print(f"{len(wanted) - failures} right, {failures} failed or wrong")
    return 1 if failures else 0
