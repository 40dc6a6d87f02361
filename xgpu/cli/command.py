"""The base of the subcommands of ``xgpu``, and options that several share."""

import argparse
import shlex
from collections.abc import Callable, Sequence

from xgpu.cli.process import UsageError, doing
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dtypes import parse_spec
from xgpu.errors import InvalidInput
from xgpu.levels.pipeline import GRAPH
from xgpu.options import CONTROL_FLOW, PRODUCTS, Options
from xgpu.records import dataclass


def _never(arguments: argparse.Namespace) -> bool:
    return False


@dataclass(frozen=True)
class Command:
    """A subcommand: its options, and what it does with them. ``uses_gpu`` tells whether JAX may start the GPU."""

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    uses_gpu: Callable[[argparse.Namespace], bool] = _never


def add_program_arguments(parser: argparse.ArgumentParser, specs: str, help_: str) -> None:
    """Add the arguments that name a program: the source, its arguments and the target."""
    parser.add_argument("source", metavar="SOURCE", help="file.py:function, file.hlo, file.mlir or file.te")
    parser.add_argument("--arg", metavar=specs, action="append", default=[], help=f"{help_}; once per argument")
    parser.add_argument(
        "--keep-barriers", action="store_true", help="no kernel crosses a lax.optimization_barrier of the program"
    )
    parser.add_argument(
        "--products",
        choices=PRODUCTS,
        default=PRODUCTS[0],
        help="what computes matrix products; auto (the default): kernels where they are expected to be clearly faster, "
        "else XLA's library; kernels: kernels where they are about as fast; all: always kernels",
    )
    parser.add_argument(
        "--control-flow",
        choices=CONTROL_FLOW,
        default=CONTROL_FLOW[0],
        help="what runs loops and branches that are no kernel; xla (the default): XLA; launches: a host that launches "
        "kernels, as in the packages of xgpu export",
    )
    parser.add_argument(
        "--target", metavar="GPU", default=DEFAULT_DEVICE, help=f"{DEFAULT_DEVICE} if left out; xgpu devices lists all"
    )


def options_of(arguments: argparse.Namespace) -> Options:
    """Return the options of a compilation that the command line chose."""
    return Options(
        keep_barriers=arguments.keep_barriers, products=arguments.products, control_flow=arguments.control_flow
    )


def doing_compilation(arguments: argparse.Namespace, specs: Sequence[str]) -> None:
    """Record that the program of ``arguments`` is compiled, and with which command, for what is said of failures."""
    # Not before `supervise`: it loads MLIR.
    from xgpu.passes.framework.manager import compiling_with

    options = [] if arguments.target == DEFAULT_DEVICE else ["--target", arguments.target]
    options += ["--keep-barriers"] if arguments.keep_barriers else []
    options += [] if arguments.products == PRODUCTS[0] else ["--products", arguments.products]
    options += [] if arguments.control_flow == CONTROL_FLOW[0] else ["--control-flow", arguments.control_flow]
    given = [word for spec in specs for word in ("--arg", spec)]
    compiling_with(shlex.join(["xgpu", "compile", arguments.source, *given, *options]))
    doing(f"compiling {arguments.source}")


def check_spec(text: str) -> None:
    """Raise `UsageError` for text that is no array specification, and for a file, which `xgpu run` alone takes."""
    if "@" in text:
        raise UsageError(f"--arg {text}: only xgpu run takes arrays of files; expected a form such as f32[128,1024]")
    as_usage(parse_spec, text)


def as_usage[T, R](read: Callable[[T], R], value: T) -> R:
    """Return ``read(value)``; an `InvalidInput` is wrong usage, since ``value`` comes from the command line."""
    try:
        return read(value)
    except InvalidInput as error:
        raise UsageError(error.message) from None


def check_target(name: str) -> str:
    """Return ``name`` if it is a target; raises `UsageError` if not."""
    return as_usage(device, name).name


def levels_of(text: str) -> list[str]:
    """Return the levels in ``LEVEL,LEVEL``, in the order given; raises `UsageError` for one that there is not."""
    levels = [level.strip() for level in text.split(",")]
    return list(dict.fromkeys(as_usage(GRAPH.level, level).name for level in levels))
