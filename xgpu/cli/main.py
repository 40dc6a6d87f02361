"""The ``xgpu`` command."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

import xgpu
from xgpu.cli.arguments import Parser
from xgpu.cli.process import doing_step, exit_code, supervise

PROGRAM = "xgpu"
_EPILOG = """\
SOURCE is a JAX function as file.py:function, HLO text as file.hlo, or StableHLO text as file.mlir.
SPEC is an array's type and shape: f32[128,1024], bf16[8], pred[], s32[3], ... A function without any takes those of its
attribute example_args.
Exit code: 0 done, 1 something is wrong with the input (said on stderr), 2 wrong usage.
"""


def _parser() -> Parser:
    # Not before `supervise`: these load MLIR.
    from xgpu.cli import cache, compile, doctor, explain, export, info, run

    parser = Parser(PROGRAM, "Compile JAX programs to GPU kernels.", _EPILOG)
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    programs = compile.COMPILE, run.RUN, explain.EXPLAIN, export.EXPORT
    others = cache.CACHE, info.OPS_COMMAND, info.DEVICES_COMMAND, doctor.DOCTOR
    for command in (*programs, *others):
        name, summary = command.name, command.summary
        subparser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.add_arguments(subparser)
        subparser.set_defaults(command=command)
    return parser


def _version() -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "llvmlite"))
    return f"xgpu {xgpu.__version__} ({libraries})"


def _keep_gpu_free(arguments: argparse.Namespace) -> None:
    """Keep JAX from starting a GPU that is not used: that takes seconds, and most of the GPU's memory."""
    if not arguments.command.uses_gpu(arguments):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; with no ``argv``, this process's arguments in a supervised process."""
    if argv is None:
        supervise(PROGRAM)
        # No progress messages from XLA; it reads this when it is loaded.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

    def body() -> int:
        arguments = _parser().parse_args(argv)
        if argv is None:
            _keep_gpu_free(arguments)
        # Not before `supervise`: it loads MLIR.
        from xgpu.passes.framework.manager import announce_to

        announce_to(doing_step)
        code: int = arguments.command.run(arguments)
        return code

    return exit_code(PROGRAM, body)


if __name__ == "__main__":
    sys.exit(main())
