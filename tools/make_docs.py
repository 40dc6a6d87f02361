"""Writes the documents in docs/ that are made from the code: ``python -m xgpu.tools.make_docs`` in the tree.

So is the table in `acts_on`, which is code. A test fails where they are not what the code says.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import xgpu
from xgpu import ir
from xgpu.cli.opt.list_passes import pass_list
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dialects.base import documentation
from xgpu.dialects.discardable import discardable_documentation
from xgpu.dialects.xgpu import OPS
from xgpu.emit.family import Family
from xgpu.emit.family_table import FAMILIES
from xgpu.levels import pipeline
from xgpu.levels.level_graph import Pipeline
from xgpu.passes.framework import acts_on, manager
from xgpu.passes.framework.acts_on import table_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.registry import all_passes
from xgpu.passes.set_level import SetLevel

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCE = "examples/bias_relu.py:bias_relu"
"""The function that docs/levels.md follows, as a command in the tree names it."""

_ACTS_ON = Path(acts_on.__file__)
"""The source whose table is made from the passes."""
_QUOTES = '"""'
_TABLE = f"_TABLE = {_QUOTES}"

_MADE = "<!-- Made by python -m xgpu.tools.make_docs; edit what it is made from instead. -->"

_ATTRIBUTES = """## Attributes of other operations

What xgpu hangs on functions, on their arguments and on operations of other dialects, as `dialects/discardable.py`
declares it. A name that is not here, or that stands elsewhere, is refused.
"""

_SCHEDULES = """## Schedules

Each function of level `fusions` has the numbers by which its kernel's threads share the work, as
`xgpu.schedule = #xgpu.schedule<threads = 128, vector = 4, rows = 1, row = 1024>`. They change how fast a kernel is, and
in which order it adds up, but nothing else of what it computes. Numbers that are left out are chosen, and so are all of
them if the attribute is. What is written is kept, and refused with the reason where a kernel cannot have it. From
Python, `Options(schedules={"relu_fusion_0": {"vector": 2}})` fixes the same numbers.
"""

_PRODUCT = "tests/lit/emit/products/product.mlir"
"""A program that has the level ``tiles``."""
_PROSE = {
    "stablehlo": "What JAX traced, normalised: calls inlined, CHLO written as StableHLO. Each operation still makes a"
    " whole tensor.",
    "prepared": "The same program, rewritten for the planner: constants are copied into the blocks that use them, large"
    " reductions split, matrix products left to XLA turned, and so on. Here there was nothing to do.",
    "fusions": "One private function per kernel, called by `@main`. `xgpu.emitter` names the emitter chosen for it,"
    " `xgpu.schedule` says by which numbers its threads share the work; both may be edited. (dialect.md has all.) A"
    " kernel that computes several side by side, of emitter `parts`, calls a function for each.",
    "tiles": "Products, chains of them and block programs have this level, so here is another program. `xgpu.blocks`"
    " are its blocks, `xgpu.steps` what each does step by step; a tile is read and written at the indices of its map,"
    " where its constraints hold. What is computed from tiles is StableHLO, and nothing is said of threads yet.",
    "emitted": "One module per kernel. The entry function takes the output as its last parameter and returns it"
    " updated, so the program is still functional. The map of `xgpu.loop` says which elements a thread computes:"
    " `d0` is the thread, `d1` the block, `s0` the element of the thread. `@fusion_0__root` computes one element"
    " at given indices; broadcasts are gone, as each was only a change of indices.",
    "optimized": "One rank-1 tensor per array, one access of four elements per array, no loop, and two linear indices"
    " that are computed once.",
    "lowered": "Tensors are gone: pointers to global memory (`!llvm.ptr<1>`), loads and stores with alignment, and"
    " index arithmetic in `index`, for which `xgpu.index_bits` says how wide it will be. This level is the same for"
    " every target; the host executor starts here too.",
    "llvm": "The LLVM and NVVM dialects only. `index` became `i32`, thread and block numbers are special registers,"
    " and functions such as `exp` would be arithmetic by now.",
    "llvmir": "The same as LLVM IR text, before LLVM's own passes. `align 16` and `!invariant.load` are what PTX's"
    " `ld.global.nc.v4` comes from.",
    "ptx": "After LLVM's passes at -O3. The remainder by 2 is an `and`; there is one 16-byte access per array.",
}


def documents() -> dict[str, str]:
    """Return the text of each document by its file name."""
    return {"dialect.md": _dialect(), "passes.md": _passes(), "levels.md": _levels(), _ACTS_ON.name: _acts_on()}


def _dialect() -> str:
    head = (
        f"# The xgpu dialect\n\n{_MADE}\n\nWhat `xgpu ops` prints: every operation as `dialects/xgpu.py` declares it."
        " Operations print in MLIR's generic form; `#xgpu.map<...>` holds an indexing map, all ranges inclusive.\n\n"
    )
    parts = [head, *(documentation(op) for op in OPS.values()), _ATTRIBUTES, discardable_documentation(), _SCHEDULES]
    return "\n".join([*parts, *map(_schedule_section, FAMILIES.values())])


def _schedule_section(family: Family) -> str:
    rows = [
        f"| `{each.name}` | {each.metadata.get('range', 'true or false')} | {each.metadata['doc']} |"
        for each in fields(family.schedule)
    ]
    text = inspect.cleandoc(family.schedule.__doc__ or "")
    return "\n".join((f"### `{family.name}`\n", f"{text}\n", "| number | values | |", "|---|---|---|", *rows, ""))


def _passes() -> str:
    parts = [
        f"# Passes\n\n{_MADE}\n",
        "The pipelines as `xgpu/levels/pipeline.py` holds them, each pass with the reason why it stands where it does."
        " Words in braces depend on the target and on the options.\n",
        _level_table(),
        _stage("an imported module", "`stablehlo`", pipeline.NORMALIZE),
        *(_stage(f"`{e.source}`", f"`{e.target}`", e.passes) for e in pipeline.GRAPH.edges if e.passes),
        f"## Options\n\nWhat `xgpu-opt --list-passes` prints:\n\n```text\n{pass_list().rstrip()}\n```\n",
        *map(_pass_section, all_passes()),
    ]
    return "\n".join(parts)


def _level_table() -> str:
    """Return the graph of levels, each with what it is made from."""
    rows = [
        f"| `{level.name}` | {level.of} | {'yes' if level.is_mlir else 'no'} | {_origins(level.name)} |"
        for level in pipeline.GRAPH.levels
    ]
    return "\n".join(("## Levels\n", "| level | of a | accepted back | made from |", "|---|---|---|---|", *rows, ""))


def _origins(level: str) -> str:
    edges = [edge for edge in pipeline.GRAPH.edges if edge.target == level]
    if not edges:
        return "a file, see [loops.md](loops.md)" if level == "te" else "the program, by the frontend"
    return ", ".join(f"`{edge.source}` by {edge.stage or 'the passes below'}" for edge in edges)


def _stage(source: str, target: str, passes: Pipeline) -> str:
    rows = [f"| `{text.replace('{{', '{').replace('}}', '}')}` | {reason} |" for text, reason in passes]
    return "\n".join((f"## From {source} to {target}\n", "| pass | why here |", "|---|---|", *rows, ""))


def _pass_section(cls: type[Pass]) -> str:
    return f"## `{cls.NAME}`\n\n{inspect.cleandoc(cls.__doc__ or '')}\n"


def _levels() -> str:
    program = xgpu.compile(str(ROOT / SOURCE))
    walk = _Walk(program.ir("emitted"))
    between = {
        "optimized": walk.through(lambda: pipeline.optimize(device(DEFAULT_DEVICE))),
        "lowered": walk.through(pipeline.lower),
    }
    parts = [
        f"# One function through all levels\n\n{_MADE}\n",
        "The README shows this walk abbreviated. Every text below is what the command above it prints, in full; from"
        " `emitted` to `lowered` also after each pass that changes it.\n",
        f"```python\n{(ROOT / SOURCE.partition(':')[0]).read_text().rstrip()}\n```\n",
    ]
    for level, prose in _PROSE.items():
        parts.append(f"## `{level}`\n\n{prose}\n")
        parts.append(between.get(level, ""))
        source = _PRODUCT if pipeline.GRAPH.level(level).is_of_some else SOURCE
        shown = xgpu.compile(ROOT / source) if source == _PRODUCT else program
        parts.append(_console(f"xgpu compile {source} --emit {level}", shown.ir(level)))
    return "\n".join(part for part in parts if part)


def _console(command: str, output: str) -> str:
    return f"```console\n$ {command}\n{output.rstrip()}\n```\n"


class _Walk:
    """A kernel on its way through the passes, given as text of level ``emitted``."""

    def __init__(self, text: str):
        self._context = ir.make_context()
        self._module = ir.Module.parse(text, self._context)

    def through(self, passes: Callable[[], list[manager.Step]]) -> str:
        """Run passes and return a section of Markdown for each that changes something, one for MLIR's in a row."""
        with self._context:
            steps = passes()
        sections: list[str] = []
        names: list[str] = []
        before = str(self._module)
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            manager.run(self._module, [step])
            text = str(self._module)
            if text != before and not isinstance(step, SetLevel):
                names.append(f"`{step}`")
                changed = text
            before = text
            if names and not (isinstance(step, manager.MlirPass) and isinstance(following, manager.MlirPass)):
                sections.append(f"### After {', '.join(names)}\n\n```mlir\n{changed.rstrip()}\n```\n")
                names = []
        # What the last one leaves is the level itself, which comes next.
        return "\n".join([*sections[:-1], "### At the end\n"])


def _acts_on() -> str:
    """Return the source of `acts_on` with the table that the passes make."""
    before, _, after = _ACTS_ON.read_text().partition(_TABLE)
    return "".join((before, _TABLE, table_of(all_passes()), _QUOTES, after.partition(_QUOTES)[2]))


def stale() -> list[str]:
    """Return the names of the documents that are not what the code says."""
    return [name for name, text in documents().items() if _normal(_read(_path(name))) != _normal(text)]


def _path(name: str) -> Path:
    return _ACTS_ON if name == _ACTS_ON.name else DOCS / name


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _normal(text: str) -> str:
    """Spell the alignment of loads and stores as jaxlib 0.12 does; 0.11 prints it as an attribute."""
    return re.sub(r"\{alignment = (\d+) : i64\}", r"<alignment = \1>", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the documents that are stale, or only tell which are; returns 1 if there is anything left to do."""
    parser = argparse.ArgumentParser("make_docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a document is stale")
    arguments = parser.parse_args(argv)
    if not DOCS.is_dir():
        print(f"make_docs: error: there is no folder '{DOCS}': this runs in the source tree only", file=sys.stderr)
        return 1
    names = stale()
    for name in names:
        path = _path(name)
        print(f"{'stale' if arguments.check else 'written'}: {path.parent.name}/{name}")
        if not arguments.check:
            path.write_text(documents()[name])
    return 1 if names and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
