"""The structure of the tree: who imports whom, sizes, and a test for every pass. ``make lint`` runs this file too."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.py.sources import ROOT, Source, package_sources, sources_of_tests, walked
from xgpu.passes.framework.registry import ROOMS

LAYERS = (
    (
        "xgpu.errors",
        "xgpu.reasons",
        "xgpu.records",
        "xgpu.jax_internals",
        "xgpu.ir",
        "xgpu.dtypes",
        "xgpu.options",
        "xgpu.device",
        "xgpu.target_machine",
    ),
    ("xgpu.structure",),
    ("xgpu.numbered_block",),
    ("xgpu.hlo",),
    ("xgpu.indexing",),
    ("xgpu.costs.sectors",),
    ("xgpu.dialects",),
    ("xgpu.analysis",),
    ("xgpu.costs",),
    ("xgpu.nests", "xgpu.block_plan"),
    ("xgpu.fusion.fallback",),
    ("xgpu.fusion.widened_operands",),
    ("xgpu.fusion.loops",),
    ("xgpu.fusion.grouping",),
    ("xgpu.fusion.grouping.merging",),
    ("xgpu.fusion",),
    ("xgpu.emit",),
    ("xgpu.emit.families",),
    ("xgpu.emit.family_table",),
    ("xgpu.emit.nests",),
    ("xgpu.passes",),
    ("xgpu.target", "xgpu.target.llvm"),
    ("xgpu.target.nvptx",),
    ("xgpu.target.host",),
    ("xgpu.target.xla",),
    ("xgpu.levels",),
    ("xgpu.frontend",),
    ("xgpu.loop_language", "xgpu.block_language"),
    ("xgpu.runtime",),
    ("xgpu.driver",),
    ("xgpu.interface",),
    ("xgpu.packaging",),
    ("xgpu",),
    ("xgpu.cli",),
    ("xgpu.tools",),
)
"""Data moves one way: a module imports modules of its own layer and of the layers above it in this list.

A module belongs to the entry that is its longest prefix, ``xgpu`` alone to the package itself: a file directly in xgpu/
is of the first layer. The dialects come after the indexing maps because maps are attributes. Of the costs, sectors are
those of a map alone, so that analyses may ask for them."""

BINDINGS = ("jaxlib.mlir", "jax._src.lib.mlir")
"""The MLIR bindings under both their names. Only the module below imports them."""

BINDINGS_PARENTS = frozenset(name.rpartition(".")[0] for name in BINDINGS)
BINDINGS_IMPORTER = "xgpu.ir"

INTERNALS = "jax._src"
"""What JAX does not document. Only the module below imports it."""
INTERNALS_IMPORTER = "xgpu.jax_internals"

WALKER = "xgpu.structure"
"""The only module that walks over operations by the bindings' callbacks: others ask it."""

PASS_BASES = frozenset(("Pass", "BlockRewrite", "OperationRewrite", "ModuleRewrite"))
"""The classes that a pass derives from."""

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 50
MAX_FOLDER_FILES = 15
"""Beside ``__init__.py``, in a folder of the package: more are a list that nobody reads."""

CHECK_SUFFIXES = re.compile(r"(-(NEXT|SAME|DAG|NOT|LABEL|EMPTY|COUNT-[1-9][0-9]*))?(\{LITERAL\})?")
LIT_KEYWORDS = frozenset({"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "DEFINE", "REDEFINE", "END."})
LIT_SUFFIXES = frozenset({".mlir", ".hlo", ".test", ".py"})


def imports(source: Source, modules: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield line and full name of every module that ``source`` imports, anywhere in the file.

    ``from xgpu import ir`` imports ``xgpu.ir`` if that is one of ``modules``, else a name out of ``xgpu``. ``import
    xgpu`` alone imports nothing yet; each ``xgpu.name`` after it does.
    """
    bound = False
    for node in walked(source).imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name != "xgpu" or alias.asname:
                    yield node.lineno, alias.name
                bound |= alias.name.split(".")[0] == "xgpu" and not alias.asname
        else:
            base = absolute_name(source, node)
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield node.lineno, name if name in modules or base in BINDINGS_PARENTS else base
    for line, attribute in walked(source).attributes if bound else ():
        name = f"xgpu.{attribute}"
        if not attribute.startswith("__"):
            yield line, name if name in modules else "xgpu"


def absolute_name(source: Source, node: ast.ImportFrom) -> str:
    """The module that ``from ... import`` names, relative ones resolved."""
    if not node.level:
        return node.module or ""
    is_package = source.path.name == "__init__.py"
    parts = source.module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, node.module] if node.module else parts)


def inside(module: str, prefix: str) -> bool:
    """Whether ``module`` is ``prefix`` or a module in it."""
    return module == prefix or module.startswith(prefix + ".")


def layer(module: str) -> int | None:
    """The position of the module's layer, that of its longest prefix; None if it has none."""
    ranks = {name: rank for rank, names in enumerate(LAYERS) for name in names}
    matches = [name for name in ranks if module == name or (name != "xgpu" and inside(module, name))]
    return ranks[max(matches, key=len)] if matches else None


def layering_problems(sources: list[Source]) -> list[str]:
    """Every import of a later layer."""
    modules = frozenset(source.module for source in sources)
    return [
        f"{source.place(line)}: {source.module} imports {name}, which is of a later layer"
        for source in sources
        for line, name in imports(source, modules)
        if inside(name, "xgpu") and (layer(name) or 0) > (layer(source.module) or 0)
    ]


def binding_problems(sources: list[Source]) -> list[str]:
    """Every import of the MLIR bindings but the one allowed."""
    return [
        f"{source.place(line)}: imports {name}; say 'from xgpu import ir'"
        for source in sources
        if source.module != BINDINGS_IMPORTER
        for line, name in imports(source, frozenset())
        if any(inside(name, binding) for binding in BINDINGS)
    ]


def internals_problems(sources: list[Source]) -> list[str]:
    """Every import of what JAX does not document but the one allowed."""
    return [
        f"{source.place(line)}: imports {name}; say 'from {INTERNALS_IMPORTER} import ...'"
        for source in sources
        if source.module != INTERNALS_IMPORTER
        for line, name in imports(source, frozenset())
        if inside(name, INTERNALS)
    ]


def size_problems(sources: list[Source]) -> list[str]:
    """Every file and function that is too long. A function's decorators do not count, its docstring does."""
    problems = []
    for source in sources:
        if (lines := len(source.text.splitlines())) > MAX_FILE_LINES:
            problems.append(f"{source.path}: {lines} lines; at most {MAX_FILE_LINES}")
        for line, name, lines in walked(source).functions:
            if lines > MAX_FUNCTION_LINES:
                problems.append(f"{source.place(line)}: {name} has {lines} lines; at most 50")
    return problems


def is_in_room(source: Source) -> bool:
    """Whether a file lies directly in a room of passes; the framework and helpers have rooms of their own."""
    return source.module.rpartition(".")[0] in {room.__name__ for room in ROOMS} and source.path.stem != "__init__"


def pass_problems(source: Source) -> list[str]:
    """Deviations of a file of passes from the rule: file, class, pass and test share one stem, one pass a file."""
    stem = source.path.stem
    expected = "".join(word.capitalize() for word in stem.split("_"))
    classes = passes_of(source)
    if [node.name for node in classes] != [expected]:
        found = ", ".join(node.name for node in classes) or "none"
        return [f"{source.path}: expected one pass, the class {expected}(Pass); found {found}"]
    problems = []
    name = stem.replace("_", "-")
    if class_constant(classes[0], "NAME") != name:
        problems.append(f"{source.place(classes[0].lineno)}: NAME is not '{name}'")
    if "dataclass(frozen=True)" not in [ast.unparse(decorator) for decorator in classes[0].decorator_list]:
        problems.append(f"{source.place(classes[0].lineno)}: {expected} is no frozen dataclass")
    return problems


def passes_of(source: Source) -> list[ast.ClassDef]:
    """The classes of a file that are passes, but for the kinds that passes derive from."""
    classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef) and is_pass(node)]
    return [node for node in classes if node.name not in PASS_BASES]


def is_pass(node: ast.ClassDef) -> bool:
    """Whether a class says that its base is ``Pass`` or one of the kinds of passes."""
    return any(ast.unparse(base).split(".")[-1] in PASS_BASES for base in node.bases)


def class_constant(node: ast.ClassDef, name: str) -> object:
    """The value of ``name`` in the class body if it is a literal, else None."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value:
            targets, value = [statement.target], statement.value
        else:
            continue
        if [ast.unparse(target) for target in targets] == [name] and isinstance(value, ast.Constant):
            return value.value
    return None


def directive_problems(path: Path, text: str) -> list[str]:
    """Every comment in a lit test that looks like a directive but is none: the tools pass over those in silence."""
    runs = "\n".join(re.findall(r"RUN:(.*)", text))
    listed = ",".join(re.findall(r"--?check-prefix(?:es)?[= ]\s*([\w,-]+)", runs))
    prefixes = {"CHECK", "COM", *filter(None, listed.split(","))}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not (found := re.match(r"\s*(?://|#|;)\s*([A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)*(?:\{\w+\})?)(:?)", line)):
            continue
        word, colon = found.groups()
        known = word in LIT_KEYWORDS or any(
            word.startswith(prefix) and CHECK_SUFFIXES.fullmatch(word[len(prefix) :]) for prefix in prefixes
        )
        if colon and not known:
            problems.append(f"{path}:{number}: '{word}:' is no directive of lit or FileCheck with the prefixes given")
        if not colon and known and word.startswith(tuple(prefixes)) and word not in LIT_KEYWORDS:
            problems.append(f"{path}:{number}: '{word}' lacks its colon")
    return problems


def test_every_module_has_a_layer() -> None:
    assert [source.module for source in package_sources() if layer(source.module) is None] == []


def test_imports_go_one_way() -> None:
    assert not layering_problems(package_sources())


def test_one_module_imports_the_bindings() -> None:
    assert not binding_problems(package_sources() + sources_of_tests())


def test_internals_of_jax_are_imported_in_one_place() -> None:
    assert not internals_problems(package_sources())


def test_one_module_walks_over_operations() -> None:
    sources = package_sources()
    assert [source.module for source in sources if "ir.WalkResult" in source.text] == [WALKER]


def test_sizes() -> None:
    assert not size_problems(package_sources() + sources_of_tests())


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for source in package_sources():
        if not source.module.startswith("xgpu.tools"):
            for node in source.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(source.place(node.lineno))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_docstrings_begin_with_what_things_are_or_do() -> None:
    clauses = re.compile(r'^\s*[rf]?"""(What|Which|Whom?|Whose|How|Where|When|Why)\b')
    found = [
        f"{source.place(number)}: {line.strip()}"
        for source in package_sources()
        for number, line in enumerate(source.text.splitlines(), 1)
        if clauses.match(line)
    ]
    assert found == []


def test_folders() -> None:
    files = Counter(source.path.parent for source in package_sources() if source.path.name != "__init__.py")
    assert not [f"{folder}: {count} files" for folder, count in files.items() if count > MAX_FOLDER_FILES]


def test_every_pass_has_one_stem() -> None:
    passes = [source for source in package_sources() if is_in_room(source)]
    assert not [problem for source in passes for problem in pass_problems(source)]


def test_passes_lie_in_rooms_of_passes() -> None:
    """The registry looks for them nowhere else."""
    elsewhere = [source for source in package_sources() if not is_in_room(source)]
    assert not [source.place(node.lineno) for source in elsewhere for node in passes_of(source)]


def test_passes_of_different_rooms_have_different_names() -> None:
    stems = [source.path.stem for source in package_sources() if is_in_room(source)]
    assert len(stems) == len(set(stems))


def test_every_pass_has_a_lit_test() -> None:
    """It lies in the folder of the pass's room: a file STEM.mlir, or a folder STEM of such files."""
    rooms = {tuple(room.__name__.split(".")[2:]) for room in ROOMS}
    passes = {(room_of(source), source.path.stem) for source in package_sources() if is_in_room(source)}
    lit = ROOT / "tests" / "lit" / "passes"
    files = [path.relative_to(lit) for path in lit.rglob("*.mlir")]
    tests = {
        (path.parent.parts, path.stem) if path.parent.parts in rooms else (path.parent.parent.parts, path.parent.name)
        for path in files
    }
    assert not passes - tests, "passes without a lit test"
    assert not tests - passes, "lit tests of passes that do not exist"


def room_of(source: Source) -> tuple[str, ...]:
    """The folders of a pass in the folder of passes."""
    return tuple(source.module.split(".")[2:-1])


def test_folders_of_tests() -> None:
    """What an operation's text is and what is refused of it are one test of two files."""
    tests = ROOT / "tests"
    files = {
        (path.parent, path.name.removesuffix(path.suffix).removesuffix("_invalid"))
        for path in tests.rglob("*")
        if path.is_file() and "data" not in path.parts and "__pycache__" not in path.parts
    }
    counts = Counter(folder for folder, _ in files)
    assert not [f"{folder}: {count} files" for folder, count in counts.items() if count > MAX_FOLDER_FILES]


def test_lit_directives_are_known() -> None:
    files = [path for path in sorted((ROOT / "tests" / "lit").rglob("*")) if path.suffix in LIT_SUFFIXES]
    files = [path for path in files if path.name != "lit.cfg.py" and "Inputs" not in path.parts]
    assert not [problem for path in files for problem in directive_problems(path.relative_to(ROOT), path.read_text())]


def test_xgpu_opt_starts_without_jax() -> None:
    """Each lit test starts a process, so what the command imports is paid hundreds of times."""
    code = "import sys, xgpu.cli.opt.main; print(*sorted({'jax', 'llvmlite', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def fake(module: str, text: str, path: str | None = None) -> Source:
    """A file that is not there, to check the checks."""
    return Source(Path(path or module.replace(".", "/") + ".py"), module, text)


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("xgpu.emit.base", "from xgpu.analysis.subgraphs import x", 0),
        ("xgpu.emit.base", "from xgpu import ir, errors", 0),
        ("xgpu.emit.base", "from xgpu.passes.framework import base", 1),
        ("xgpu.emit.base", "def f():\n    import xgpu.target.nvptx.ptx", 1),
        ("xgpu.emit.base", "from xgpu import passes", 1),
        ("xgpu.emit.base", "from xgpu import jit", 1),
        ("xgpu.emit.base", "from ..passes import base", 1),
        ("xgpu.emit.base", "from . import base", 0),
        ("xgpu.emit.base", "import xgpu\nprint(xgpu.__file__)", 0),
        ("xgpu.emit.base", "import xgpu\nxgpu.jit", 1),
        ("xgpu.dialects.attributes", "from xgpu.indexing.interval import Interval", 0),
        ("xgpu.hlo.checks", "from xgpu.indexing.interval import Interval", 1),
        ("xgpu.tools.demo", "import xgpu\nxgpu.jit\nfrom xgpu.cli import main", 0),
    ],
)
def test_the_layering_check(module: str, text: str, expected: int) -> None:
    others = [
        fake(name, "") for name in ("xgpu", "xgpu.ir", "xgpu.errors", "xgpu.passes", "xgpu.passes.framework.base")
    ]
    assert len(layering_problems([fake(module, text), *others])) == expected


@pytest.mark.parametrize("text", ["import jaxlib.mlir.ir", "from jaxlib import mlir", "from jaxlib.mlir import ir"])
def test_the_bindings_check(text: str) -> None:
    assert len(binding_problems([fake("xgpu.emit.base", text)])) == 1
    assert not binding_problems([fake(BINDINGS_IMPORTER, text)])
    assert not binding_problems([fake("xgpu.emit.base", "import jaxlib._hlo")])


@pytest.mark.parametrize("text", ["import jax._src.core", "from jax._src import core", "from jax._src.core import Var"])
def test_the_check_of_internals(text: str) -> None:
    assert len(internals_problems([fake("xgpu.runtime.base", text)])) == 1
    assert not internals_problems([fake(INTERNALS_IMPORTER, text)])
    assert not internals_problems([fake("xgpu.runtime.base", "from jax.interpreters import mlir")])


def test_the_size_check() -> None:
    assert len(size_problems([fake("xgpu.a", "x = 1\n" * (MAX_FILE_LINES + 1))])) == 1
    assert len(size_problems([fake("xgpu.a", "def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES)])) == 1
    assert not size_problems([fake("xgpu.a", "def f():\n" + "    x = 1\n" * (MAX_FUNCTION_LINES - 1))])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('@dataclass(frozen=True)\nclass LowerIt(Pass):\n    NAME: ClassVar[str] = "lower-it"', None),
        ('@dataclass(frozen=True)\nclass LowerIt(Pass):\n    NAME = "lower_it"', "NAME is not 'lower-it'"),
        ('class LowerIt(base.Pass):\n    NAME = "lower-it"', "no frozen dataclass"),
        ("class Lowerit(Pass): ...", "found Lowerit"),
        ("x = 1", "found none"),
    ],
)
def test_the_pass_check(text: str, problem: str | None) -> None:
    problems = pass_problems(fake("xgpu.passes.lower_it", text, "passes/lower_it.py"))
    assert len(problems) == (problem is not None)
    assert problem is None or problem in problems[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("// RUN: xgpu-opt %s | FileCheck %s\n// CHECK-NEXT: x\n// CHECK-COUNT-2: y\n// CHECK{LITERAL}: [[", 0),
        ("// CHECK-NXT: x", 1),
        ("// CHEKC: x", 1),
        ("// CHECK-NEXT x", 1),
        ("// CHECK-COUNT-0: x", 1),
        ("// PTX: x", 1),
        ("// RUN: FileCheck --check-prefix=PTX %s\n// PTX: x\n// PTX-NOT: y", 0),
        ("// RUN: FileCheck --check-prefixes=A,SM-90 %s\n// A: x\n// SM-90-DAG: y", 0),
        ("// A comment, RUN or not: nothing\n// REQUIRES: ptxas", 0),
    ],
)
def test_the_directive_check(text: str, expected: int) -> None:
    assert len(directive_problems(Path("a.mlir"), text)) == expected
