"""``xgpu explain``: which kernels a program becomes, and what is left to XLA."""

import argparse

from xgpu.cli.command import Command, add_program_arguments, as_usage, check_target
from xgpu.cli.process import DONE, doing
from xgpu.device import device
from xgpu.dtypes import parse_spec
from xgpu.options import Options


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, "SPEC", "type and shape of an argument, such as f32[128,1024]")
    parser.add_argument("--remarks", action="store_true", help="say what passes did not do to the kernels, and why")


def _run(arguments: argparse.Namespace) -> int:
    target = check_target(arguments.target)
    for spec in arguments.arg:
        as_usage(parse_spec, spec)
    doing(f"compiling {arguments.source}")
    from xgpu.api import compile_to
    from xgpu.explanation import explain, remarks

    program = compile_to(None, arguments.source, arguments.arg, device(target), Options())
    sections = [str(explain(program)), remarks(program) if arguments.remarks else ""]
    print("\n\n".join(filter(None, sections)))
    return DONE


EXPLAIN = Command("explain", "list a program's kernels, and what is left to XLA and why", _add_arguments, _run)
