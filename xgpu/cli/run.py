"""``xgpu run``: runs a program and compares its outputs with XLA's on the CPU."""

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from xgpu.cli.command import Command, add_program_arguments, as_usage, check_target, doing_compilation, options_of
from xgpu.cli.process import DONE, WRONG_INPUT, UsageError, doing, report
from xgpu.cli.text import reason_of
from xgpu.dtypes import dtype_named, dtype_of_numpy, format_spec, parse_spec
from xgpu.errors import InvalidInput, Unsupported
from xgpu.runtime.compare import compare as compare_arrays

if TYPE_CHECKING:
    from xgpu.interface.api import Compiled

type Array = np.ndarray[Any, np.dtype[Any]]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    help_ = "type and shape of an argument, filled at random, or an array in NumPy's file format"
    add_program_arguments(parser, "SPEC|[TYPE]@FILE.npy", help_)
    parser.add_argument("--seed", metavar="N", type=_seed, default=0, help="of the random arguments; 0 if left out")
    parser.add_argument("--on", choices=("host", "gpu"), default="host", help="where to run; host if left out")
    parser.add_argument(
        "--sanitize", action="store_true", help="check every access on the host; exit with 1 on a fault"
    )
    parser.add_argument(
        "--count", action="store_true", help="print how many operations and loads each launch executes, on the host"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if an output disagrees with XLA's")


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected a number such as 0, got '{text}'")
    return int(text)


def _run(arguments: argparse.Namespace) -> int:
    target = check_target(arguments.target)
    if arguments.sanitize and arguments.on != "host":
        raise UsageError("--sanitize runs on the host: leave out --on gpu")
    if arguments.count and arguments.on != "host":
        raise UsageError("--count runs on the host: leave out --on gpu")
    given = [_load(text) for text in arguments.arg]
    specs = [
        text if array is None else format_spec(dtype_of_numpy(array.dtype), array.shape)
        for text, array in zip(arguments.arg, given, strict=True)
    ]
    for spec in specs:
        as_usage(parse_spec, spec)
    doing_compilation(arguments, specs)
    # JAX takes a second to import; wrong usage is reported before that.
    from xgpu import compile

    compiled = compile(arguments.source, *specs, target=target, options=options_of(arguments))
    inputs = compiled.random_inputs(arguments.seed)
    for number, array in enumerate(given):
        if array is not None:
            inputs[number] = array
    doing(f"running {arguments.source} on the {arguments.on}")
    results = compiled.run(*inputs, on=arguments.on, sanitize=arguments.sanitize)
    if arguments.sanitize:
        print("sanitized: no fault found")
    if arguments.count:
        for launch, executed in zip(compiled.launches, compiled.count(*inputs), strict=True):
            print(f"{launch.kernel.name}: {executed} operations")
    if not (compiled.has_reference or arguments.check):
        for result in compiled.results if not (arguments.sanitize or arguments.count) else ():
            print(f"{result}: compared with nothing, as XLA does not run the level of this program")
        return DONE
    disagreeing = _print_comparisons(compiled, results, compiled.reference(*inputs))
    if not (arguments.check and disagreeing):
        return DONE
    report(f"xgpu: error: {disagreeing} of {len(compiled.results)} outputs disagree with XLA's")
    return WRONG_INPUT


def _load(argument: str) -> Array | None:
    """Return the array of ``@file.npy`` or ``type@file.npy``, or None for a specification.

    NumPy's format keeps the types of ml_dtypes as raw bytes only, which the type tells how to read.
    """
    type_name, separator, path = argument.partition("@")
    if not separator:
        return None
    try:
        with open(path, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"cannot read '{path}' as an array: {reason_of(error)}") from None
    if type_name:
        dtype = as_usage(dtype_named, type_name).numpy
        raw = array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize
        return array.view(dtype) if raw else array.astype(dtype)
    if array.dtype.kind == "V":
        raise InvalidInput(f"'{path}' holds elements of unknown type, as NumPy saves bf16; name it: bf16@{path}")
    try:
        dtype_of_numpy(array.dtype)
    except Unsupported as error:
        raise Unsupported(f"'{path}': {error.message}") from None
    return array


def _print_comparisons(compiled: "Compiled", outputs: list[Array], expected: list[Array]) -> int:
    """Print a line per output and return how many disagree."""
    disagreeing = 0
    for result, output, reference in zip(compiled.results, outputs, expected, strict=True):
        comparison = compare_arrays(np.asarray(output), np.asarray(reference))
        disagreeing += not comparison.agrees
        print(f"{result.name}: {comparison}")
    return disagreeing


def _uses_gpu(arguments: argparse.Namespace) -> bool:
    return bool(arguments.on == "gpu")


RUN = Command("run", "run a program and compare its outputs with XLA's on the CPU", _add_arguments, _run, _uses_gpu)
