"""Runs every test program on the GPU and compares with XLA on the CPU."""

import argparse
import itertools
import re
import sys
import time
from collections.abc import Sequence

import xgpu
from xgpu.errors import XgpuError
from xgpu.runtime.compare import compare, difference
from xgpu.runtime.jax_backend import gpu_device
from xgpu.tools.programs import all_programs
from xgpu.tools.programs.base import TestProgram


def main(argv: Sequence[str] | None = None) -> int:
    """Run the programs whose name contains one of the words given, or all; returns 1 if one disagrees or fails."""
    parser = argparse.ArgumentParser("gpu_check", description=__doc__)
    parser.add_argument("words", nargs="*", help="run only programs whose name contains one of these")
    parser.add_argument("--on", choices=("gpu", "host"), default="gpu", help="where the programs run; gpu if left out")
    parser.add_argument("--sanitize", action="store_true", help="on the host: check every access of the kernels")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="run only every Nth program, from the Ith on")
    arguments = parser.parse_args(argv)
    if not (part := re.fullmatch(r"(\d+)/(\d+)", arguments.part)) or not 1 <= int(part[1]) <= int(part[2]):
        parser.error(f"--part: expected I/N with I from 1 to N, got {arguments.part!r}")
    if arguments.sanitize and arguments.on != "host":
        parser.error("--sanitize goes with --on host")
    try:
        print(f"device: {gpu_device().device_kind if arguments.on == 'gpu' else 'host executor'}")
    except XgpuError as error:
        print(f"gpu_check: error: {error}", file=sys.stderr)
        return 1
    start, failures, count = time.perf_counter(), 0, 0
    for group, program in itertools.islice(all_programs(), int(part[1]) - 1, None, int(part[2])):
        name = f"{group}/{program}"
        if arguments.words and not any(word in name for word in arguments.words):
            continue
        count += 1
        if problem := check(program, arguments.on, arguments.sanitize):
            failures += 1
            print(f"FAIL {name}: {problem}", flush=True)
    print(f"{count - failures} passed, {failures} failed in {time.perf_counter() - start:.0f} s")
    return 1 if failures or not count else 0


def check(program: TestProgram, on: str, sanitize: bool = False, compiled: xgpu.Compiled | None = None) -> str | None:
    """Run a program and return what is wrong with its results, or None. ``compiled`` is the program, if it is known.

    ``sanitize``, on the host, has it run once more and finds accesses out of bounds, races and the like; see
    `xgpu.Compiled.run`.
    """
    try:
        compiled = compiled or program.compile()
        inputs = program.inputs() if program.inputs else compiled.random_inputs(seed=1)
        expected = program.expected(inputs) if program.expected else compiled.reference(*inputs)
        if sanitize:
            # First, as the code without checks is made from what is labelled for these.
            compiled.run(*inputs, on=on, sanitize=True)
        results = compiled.run(*inputs, on=on)
    except Exception as error:
        # Whatever one program does wrong, the others are still to be checked.
        return f"{type(error).__name__}: {error}"
    problems = []
    for i, pair in enumerate(zip(results, expected, strict=True)):
        if program.expected:
            problem = difference(*pair)
        else:
            comparison = compare(*pair)
            problem = None if comparison.agrees else str(comparison)
        if problem:
            problems.append(f"result {i}: {problem}")
    return "; ".join(problems) or None


if __name__ == "__main__":
    sys.exit(main())
