"""The base of the subcommands of ``xgpu``, and options that several share."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xgpu.cli.process import UsageError
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.errors import InvalidInput
from xgpu.options import Options


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
    parser.add_argument("source", metavar="SOURCE", help="file.py:function, file.hlo or file.mlir")
    parser.add_argument("--arg", metavar=specs, action="append", default=[], help=f"{help_}; once per argument")
    parser.add_argument(
        "--keep-barriers", action="store_true", help="no kernel crosses a lax.optimization_barrier of the program"
    )
    parser.add_argument(
        "--target", metavar="GPU", default=DEFAULT_DEVICE, help=f"{DEFAULT_DEVICE} if left out; xgpu devices lists all"
    )


def options_of(arguments: argparse.Namespace) -> Options:
    """Return the options of a compilation that the command line chose."""
    return Options(keep_barriers=arguments.keep_barriers)


def as_usage[T, R](read: Callable[[T], R], value: T) -> R:
    """Return ``read(value)``; an `InvalidInput` is wrong usage, since ``value`` comes from the command line."""
    try:
        return read(value)
    except InvalidInput as error:
        raise UsageError(error.message) from None


def check_target(name: str) -> str:
    """Return ``name`` if it is a target; raises `UsageError` if not."""
    return as_usage(device, name).name


def levels_of(text: str, known: Sequence[str]) -> list[str]:
    """Return the levels in ``LEVEL,LEVEL``, in the order given; raises `UsageError` for one that is not ``known``."""
    levels = [level.strip() for level in text.split(",")]
    for level in levels:
        if level not in known:
            raise UsageError(f"unknown level '{level}'; the levels are {', '.join(known)}")
    return list(dict.fromkeys(levels))
