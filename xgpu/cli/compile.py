"""``xgpu compile``: a program to any of its levels, as text."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from xgpu.cli.command import (
    Command,
    add_program_arguments,
    check_spec,
    check_target,
    doing_compilation,
    levels_of,
    options_of,
)
from xgpu.cli.process import DONE, doing, report
from xgpu.cli.text import STDIN, write_bytes, write_text
from xgpu.cli.timing import summed, timing_table
from xgpu.device import device
from xgpu.errors import InvalidInput
from xgpu.levels.pipeline import GRAPH, LEVELS

if TYPE_CHECKING:
    from xgpu.interface.api import Compiled

_SUFFIXES = {"te": ".te", "llvmir": ".ll", "ptx": ".ptx", "cubin": ".cubin", "sass": ".sass"}
"""Names of the files of levels; all others are MLIR text."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, "SPEC", "type and shape of an argument, such as f32[128,1024]")
    parser.add_argument("--emit", metavar="LEVEL,...", default="ptx", help=f"of {', '.join(LEVELS)}; ptx if left out")
    parser.add_argument(
        "-o", metavar="PATH", dest="output", default=STDIN, help="file, or folder for several levels; else stdout"
    )
    parser.add_argument("--timing", action="store_true", help="print how long each stage and pass took to stderr")


def _run(arguments: argparse.Namespace) -> int:
    levels = levels_of(arguments.emit)
    target = check_target(arguments.target)
    for spec in arguments.arg:
        check_spec(spec)
    doing_compilation(arguments, arguments.arg)
    # What this command is for is to see the compiler work.
    os.environ["XGPU_CACHE"] = "off"
    # JAX takes a second to import; wrong usage is reported before that.
    from xgpu.interface.api import compile_to

    compiled = compile_to(_last_of_all(levels), arguments.source, arguments.arg, device(target), options_of(arguments))
    if not compiled.kernels and compiled.main is None and any(GRAPH.level(level).of == "kernel" for level in levels):
        report("xgpu: note: the program has no kernels: it returns what it is given")
    texts = {}
    for level in levels:
        doing(f"compiling {arguments.source} to level {level}")
        texts[level] = compiled.ir(level).rstrip("\n") + "\n"
    if arguments.output == STDIN:
        headed = len(levels) > 1
        write_text(
            STDIN, "\n".join(f"// ===== {level} =====\n{text}" if headed else text for level, text in texts.items())
        )
    elif len(levels) == 1:
        _write_level(Path(arguments.output), levels[0], texts[levels[0]], compiled)
    else:
        _write_folder(Path(arguments.output), texts, compiled)
    if arguments.timing:
        from xgpu.interface.explanation import summary

        report(f"{summary(compiled)}\n{timing_table(summed(compiled.timings))}")
    return DONE


def _last_of_all(levels: Iterable[str]) -> str | None:
    """Return the last level that every kernel is taken to, several at a time, before any text is asked for."""
    if any(GRAPH.leads("ptx", level) for level in levels):
        return "ptx"
    return "lowered" if any(GRAPH.leads("optimized", level) for level in levels) else None


def _write_folder(folder: Path, texts: dict[str, str], compiled: "Compiled") -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make folder '{folder}': {error.strerror}") from None
    for level, text in texts.items():
        _write_level(folder / f"{level}{_SUFFIXES.get(level, '.mlir')}", level, text, compiled)


def _write_level(path: Path, level: str, text: str, compiled: "Compiled") -> None:
    """Write one level; machine code goes into a file as what it is, one file per kernel if there are several."""
    if level != "cubin":
        write_text(str(path), text)
        return
    for kernel in compiled.kernels:
        single = len(compiled.kernels) == 1
        place = path if single else path.with_name(f"{path.stem}.{kernel.name}{path.suffix}")
        write_bytes(place, bytes.fromhex(kernel.text("cubin")))


COMPILE = Command("compile", "compile a program and print it at a level", _add_arguments, _run)
