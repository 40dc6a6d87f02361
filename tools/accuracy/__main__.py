"""The command ``python -m xgpu.tools.accuracy``."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from xgpu.errors import XgpuError
from xgpu.runtime.jax_backend import gpu_device
from xgpu.tools.accuracy import report
from xgpu.tools.accuracy.formats import FORMATS, Format, is_measurable
from xgpu.tools.accuracy.functions import FUNCTIONS
from xgpu.tools.accuracy.measure import Measured, measure

_SAMPLES = {("xgpu", "host"): 1 << 16, ("xgpu", "gpu"): 1 << 24, ("xla", "host"): 1 << 16, ("xla", "gpu"): 1 << 20}
"""Numbers of f32 by whose code is measured, and where."""
_MOST_IN_F64 = 1 << 18
"""Exact results for f64 are computed in long double, which is slow."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("accuracy", description="Measure the largest errors of functions of floats.")
    parser.add_argument("--on", choices=("host", "gpu"), default="host", help="where to run; host if left out")
    parser.add_argument(
        "--of", choices=("xgpu", "xla"), default="xgpu", help="whose code to measure; xgpu's if left out"
    )
    parser.add_argument("--function", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS), metavar="NAME")
    parser.add_argument("--type", nargs="+", choices=FORMATS, default=list(FORMATS), metavar="TYPE")
    parser.add_argument("--samples", type=int, metavar="N", help="numbers of f32; a quarter for f64 or pairs")
    parser.add_argument("--exhaustive", action="store_true", help="try every number of f32 (functions of one argument)")
    parser.add_argument("--save", nargs="?", type=Path, const=report.DOCS, metavar="FOLDER", help="update the tables")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per function and type; returns 1 if an error of xgpu's code is larger than allowed."""
    options = _parser().parse_args(argv)
    try:
        place = "host" if options.on == "host" else gpu_device().device_kind
    except XgpuError as error:
        print(f"accuracy: error: {error}", file=sys.stderr)
        return 1
    if options.save is not None and not options.save.is_dir():
        print(f"accuracy: error: there is no folder '{options.save}'", file=sys.stderr)
        return 1
    column = place if options.of == "xgpu" else f"XLA, {place}"
    results = report.load(options.save) if options.save else {}
    start, failures = time.perf_counter(), 0
    for name in options.function:
        for form in (FORMATS[each] for each in options.type):
            bound = FUNCTIONS[name].bounds[list(FORMATS).index(form.name)]
            if bound is None or not is_measurable(form):
                continue
            found = _measure(options, name, form)
            report.add(results, column, form.name, name, found)
            failed = options.of == "xgpu" and found.error > bound
            failures += failed
            print(_line(name, form, found, bound, failed), flush=True)
    if options.save:
        report.save(options.save, results)
    print(f"{failures} larger than allowed; {time.perf_counter() - start:.0f} s on {column}")
    return 1 if failures else 0


def _measure(options: argparse.Namespace, name: str, form: Format) -> Measured:
    samples = options.samples or _SAMPLES[options.of, options.on]
    if form.name == "f64":
        samples = min(samples // 4, _MOST_IN_F64)
    function = FUNCTIONS[name]
    if function.arity == 2:
        samples //= 4
    exhaustive = options.exhaustive and form.bits <= 32
    return measure(function, form, on=options.on, compiler=options.of, samples=samples, exhaustive=exhaustive)


def _line(name: str, form: Format, found: Measured, bound: float, failed: bool) -> str:
    at = ", ".join(f"{value:.17g}" for value in found.at)
    mark = "FAIL" if failed else ""
    where = f"at ({at}): {found.result:.9g}, exactly {found.expected:.12g}"
    return f"{name:11}{form.name:5}{found.error:9.3f} of {bound:<5g}{mark:5}{where}"


if __name__ == "__main__":
    sys.exit(main())
