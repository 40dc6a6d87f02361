"""``xgpu export``: a program as a folder for C, C++ and Rust programs."""

import argparse
from collections.abc import Sequence
from typing import Any

from xgpu.cli.command import Command, check_spec, check_target, doing_compilation
from xgpu.cli.process import DONE, UsageError
from xgpu.device import DEFAULT_DEVICE
from xgpu.options import Options


class _AddSpec(argparse.Action):
    """Adds a specification to the last signature."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        namespace.signatures = [*namespace.signatures[:-1], [*namespace.signatures[-1], values]]


class _BeginSignature(argparse.Action):
    """Begins another signature."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        namespace.signatures = [*namespace.signatures, []]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="file.py:function, file.hlo, file.mlir or file.te")
    parser.add_argument(
        "-o", metavar="DIR", dest="output", required=True, help="the folder: empty, or an earlier package"
    )
    parser.add_argument(
        "--arg",
        metavar="SPEC",
        dest="signatures",
        action=_AddSpec,
        default=[[]],
        help="type and shape of an argument, such as f32[128,1024]; once per argument",
    )
    parser.add_argument(
        "--also",
        nargs=0,
        dest="signatures",
        action=_BeginSignature,
        help="arguments of other sizes follow, between which the package chooses when it runs",
    )
    parser.add_argument("--name", metavar="NAME", help="what C functions begin with; the program's name if left out")
    parser.add_argument(
        "--target",
        metavar="GPU",
        dest="targets",
        action="append",
        help=f"once per GPU to have kernels for; {DEFAULT_DEVICE} if left out; xgpu devices lists all",
    )
    parser.add_argument("--no-host", action="store_true", help="leave out the kernels for the processor")
    parser.add_argument(
        "--check", action="store_true", help="prove what can be proved of the kernels first; exit with 1 on a fault"
    )
    parser.add_argument(
        "--keep-barriers", action="store_true", help="no kernel crosses a lax.optimization_barrier of the program"
    )


def _run(arguments: argparse.Namespace) -> int:
    targets = [check_target(name) for name in arguments.targets or [DEFAULT_DEVICE]]
    signatures: Sequence[Sequence[str]] = arguments.signatures
    for spec in (spec for each in signatures for spec in each):
        check_spec(spec)
    if len(signatures) > 1 and not all(signatures):
        raise UsageError("--also: expected --arg before and after it")
    compiled_as = argparse.Namespace(**vars(arguments), target=targets[0], products="all", control_flow="launches")
    doing_compilation(compiled_as, signatures[0])
    # JAX takes a second to import; wrong usage is reported before that.
    from xgpu import export

    exported = export(
        arguments.source,
        *signatures[0],
        to=arguments.output,
        name=arguments.name,
        targets=targets,
        signatures=signatures[1:],
        options=Options(keep_barriers=arguments.keep_barriers),
        host=not arguments.no_host,
        check=arguments.check,
    )
    print(exported)
    return DONE


EXPORT = Command("export", "write a folder that C, C++ and Rust programs use", _add_arguments, _run)
