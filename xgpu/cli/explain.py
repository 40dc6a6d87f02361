"""``xgpu explain``: the kernels of a program, and the operations that fall back to XLA."""

import argparse

from xgpu.cli.command import Command, add_program_arguments, check_spec, check_target, doing_compilation, options_of
from xgpu.cli.process import DONE
from xgpu.device import device


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, "SPEC", "type and shape of an argument, such as f32[128,1024]")
    parser.add_argument("--stored", action="store_true", help="say why each value is stored that kernels store")
    parser.add_argument(
        "--plan", action="store_true", help="say why values are stored or not, and kernels merged or not"
    )
    parser.add_argument("--remarks", action="store_true", help="say what passes did not do to the kernels, and why")


def _run(arguments: argparse.Namespace) -> int:
    target = check_target(arguments.target)
    for spec in arguments.arg:
        check_spec(spec)
    doing_compilation(arguments, arguments.arg)
    from xgpu.interface.api import compile_to
    from xgpu.interface.explanation import explain, plan_reasons, remarks
    from xgpu.interface.nest_explanation import explain_nests
    from xgpu.interface.tile_explanation import explain_tiles

    options = options_of(arguments)
    program = compile_to(None, arguments.source, arguments.arg, device(target), options)
    if "mapped" in program.modules or program.given_level == "tiles":
        text = explain_nests(program) if "mapped" in program.modules else explain_tiles(program)
        print("\n\n".join(filter(None, [text, remarks(program) if arguments.remarks else ""])))
        return DONE
    sections = [str(explain(program))]
    if arguments.stored or arguments.plan:
        sections.append(plan_reasons(program, device(target), only_stored=not arguments.plan))
    if arguments.remarks:
        sections.append(remarks(program))
    print("\n\n".join(filter(None, sections)))
    return DONE


EXPLAIN = Command("explain", "list a program's kernels, and what is left to XLA and why", _add_arguments, _run)
