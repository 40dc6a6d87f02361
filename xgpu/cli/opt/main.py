"""``xgpu-opt``: runs passes of ours and of MLIR's on MLIR text, with mlir-opt's habits."""

import sys
from collections.abc import Sequence

from xgpu.cli.arguments import Parser
from xgpu.cli.process import exit_code, supervise

PROGRAM = "xgpu-opt"

_EPILOG = """\
A pipeline names passes of xgpu and of MLIR in one list: -p 'lower-loops,canonicalize,unroll-loops{max-trip=8}'.
Exit code: 0 done, 1 something is wrong with the input (said on stderr), 2 wrong usage.
"""


def _parser() -> Parser:
    parser = Parser(PROGRAM, "Run passes on MLIR text and print the result.", _EPILOG)
    add = parser.add_argument
    add("file", nargs="?", default="-", help="MLIR text; stdin if '-' or left out")
    pipeline = parser.add_mutually_exclusive_group()
    pipeline.add_argument("-p", metavar="PASSES", dest="pipeline", help="the passes: 'pass{option=value},pass,...'")
    pipeline.add_argument(
        "--pass-pipeline", metavar="PIPELINE", dest="pipeline", help="the same as 'builtin.module(pass,...)'"
    )
    add("-o", metavar="FILE", dest="output", default="-", help="where the result goes; stdout if '-' or left out")
    add("--list-passes", action="store_true", help="print every pass of xgpu and its options, and exit")
    add("--split-input-file", action="store_true", help="treat the parts between '// -----' lines as separate inputs")
    add("--verify-diagnostics", action="store_true", help="compare diagnostics with 'expected-error {{...}}' comments")
    add(
        "--verify-each",
        metavar="true|false",
        default="true",
        choices=("true", "1", "false", "0"),
        help="whether to verify after each pass; true if left out",
    )
    for when in ("before", "after"):
        add(f"--print-ir-{when}", metavar="PASS,...", default="", help=f"print the IR to stderr {when} these passes")
        add(f"--print-ir-{when}-all", action="store_true", help=f"print the IR to stderr {when} each pass")
    add("--remarks", action="store_true", help="print what passes did not do, and why, as remarks to stderr")
    add("--mlir-timing", action="store_true", help="print how long each pass took to stderr")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--mlir-print-op-generic", action="store_true", help="print operations in the generic form")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; with no ``argv``, this process's arguments in a supervised process."""
    if argv is None:
        supervise(PROGRAM)

    def body() -> int:
        arguments = _parser().parse_args(argv)
        # Not before `supervise`: it loads MLIR, and libraries that start threads.
        from xgpu.cli.opt.session import Session

        return Session(arguments).run()

    return exit_code(PROGRAM, body)


if __name__ == "__main__":
    sys.exit(main())
