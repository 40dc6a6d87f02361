"""Commands and examples of README.md and of guides run and print what is shown; made documents are current."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lit.harness.start import start_server
from tests.py import effort
from xgpu.tools import make_docs

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
HOWTO = (ROOT / "docs" / "howto.md").read_text()
EXPORT = (ROOT / "docs" / "export.md").read_text()
BLOCK_PROGRAMS = (ROOT / "docs" / "block_programs.md").read_text()
DOCUMENTS = {
    "README.md": README,
    "docs/howto.md": HOWTO,
    "docs/export.md": EXPORT,
    "docs/block_programs.md": BLOCK_PROGRAMS,
}

SUBSTITUTES = {
    "make demo": "python -m xgpu.tools.demo",
    # Without a GPU these say so and exit with 1; that they start is what can be tested anywhere.
    "python -m xgpu.tools.benchmark gelu": "python -m xgpu.tools.benchmark --help",
    "python -m xgpu.tools.benchmark_models gpt2": "python -m xgpu.tools.benchmark_models --help",
}
"""Replacements of commands that install things or need a GPU."""

MAIN_OF = {
    "xgpu": "xgpu.cli.main",
    "xgpu-opt": "xgpu.cli.opt.main",
    "python": None,
    "lit": "from lit.main import main; main()",
}
"""The commands of an environment that README has activated, and the module or code that each runs."""
FORKED = ("xgpu", "xgpu-opt")
"""Those that a server forks for, as for lit: there, and in tests/py/cli, some start as a user's."""

LINK = re.compile(r"\[[^\]]+\]\([^)]+\)")
COMPILERS = ("cc", "c++")
HAVE_RUN: set[tuple[Path, str]] = set()
"""Commands that have written what others read, and the copy of the tree in which."""


class Block(NamedTuple):
    """A fenced block: its language, the path of the file that it is or changes (or nothing), its line, its text."""

    language: str
    path: str
    line: int
    text: str


class Command(NamedTuple):
    """A command of a console block at a place of a document, and the output that is shown for it."""

    place: str
    text: str
    output: list[str]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text."""
    found = re.finditer(r"^```(\w+) ?(.*)\n((?:.*\n)*?)^```$", text, re.MULTILINE)
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 1, m[3]) for m in found]


def commands(document: str) -> list[Command]:
    """The commands of all console blocks of a document."""
    found: list[Command] = []
    for block in blocks(DOCUMENTS[document]):
        if block.language != "console":
            continue
        assert block.text.startswith("$ "), f"line {block.line}: a console block begins with a command"
        for number, line in enumerate(block.text.splitlines(), block.line + 1):
            if line.startswith("$ "):
                found.append(Command(f"{document}:{number}", line.removeprefix("$ "), []))
            else:
                found[-1].output.append(line)
    return found


def shows(pattern: list[str], output: str) -> bool:
    """Whether ``output`` is what ``pattern`` shows: a line ``...`` is any lines, inside a line it is any characters."""
    lines = ["(?:.*\n)*" if line.strip() == "..." else _line(line) for line in pattern]
    return re.fullmatch("".join(lines), output) is not None


def _line(line: str) -> str:
    return ".*".join(map(re.escape, line.split("..."))) + "\n"


def apply(diff: str, text: str) -> str:
    """Return ``text`` changed by ``diff``, whose lines that stay or go it has once."""
    old, new = ("".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in kept) for kept in (" -", " +"))
    assert text.count(old) == 1, f"{text.count(old)} times in the file:\n{old}"
    return text.replace(old, new)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with what the documents have their reader write, importable without being installed."""
    copy = tmp_path_factory.mktemp("tree")
    for folder in ("xgpu", "dialects", "passes", "tools", "examples", "tests", "docs"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for block in (each for text in DOCUMENTS.values() for each in blocks(text)):
        if block.path:
            path = copy / block.path
            path.write_text(apply(block.text, path.read_text()) if block.language == "diff" else block.text)
    (copy / "build").mkdir(exist_ok=True)
    subprocess.run([copy / "tools" / "link_tree.sh"], check=True)
    (copy / "bin").mkdir()
    forked = start_server(environment(copy)) if effort.by_level(True, True, False) else []
    for name, main in MAIN_OF.items():
        start = [] if main is None else ["-c", main] if " " in main else ["-m", main]
        words = [*forked, name] if forked and name in FORKED else [sys.executable, *start]
        (copy / "bin" / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (copy / "bin" / name).chmod(0o755)
    return copy


def environment(tree: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{tree / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(tree / "build" / "tree"),
        "PYTHONSAFEPATH": "1",
        "JAX_PLATFORMS": "cpu",
    }


def run(tree: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tree,
        env=environment(tree),
        capture_output=True,
        text=True,
        check=False,
    )


COMMANDS = [
    command
    for document in DOCUMENTS
    for command in commands(document)
    if command.text in SUBSTITUTES or command.text[:5] != "make "
]


@pytest.mark.parametrize("command", COMMANDS, ids=[command.text for command in COMMANDS])
def test_a_command_prints_what_is_shown(tree: Path, command: Command) -> None:
    # A command may read a file that another one, shown before it, writes.
    earlier = writers(command)
    for text in (*earlier, command.text):
        if (compiler := text.split()[0]) in COMPILERS and shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not installed")
    for text in earlier:
        if (tree, text) not in HAVE_RUN:
            assert run(tree, text).returncode == 0
            HAVE_RUN.add((tree, text))
    done = run(tree, SUBSTITUTES.get(command.text, command.text))
    assert done.returncode == 0, f"{command.place}: {command.text}\n{done.stdout}{done.stderr}"
    if command.output:
        shown = "\n".join(command.output)
        assert shows(command.output, done.stdout), f"{command.place} shows\n{shown}\nbut it is\n{done.stdout}"


def writers(command: Command) -> list[str]:
    """The commands that write the files, or folders of files, that ``command`` reads, after those that they need."""
    words = [word.removeprefix("./") for word in command.text.split()]
    pattern = re.compile(r" (?:-o|>) (\S+)")
    written = {found[1]: other for other in COMMANDS if (found := pattern.search(other.text))}
    found: list[str] = []
    for path, other in written.items():
        is_read = any(word == path or word.startswith(f"{path}/") for word in words)
        if is_read and other.text != command.text:
            found += [text for text in (*writers(other), other.text) if text not in found]
    return found


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    shown = [command.text for document in DOCUMENTS for command in commands(document)]
    targets = {text.split()[1] for text in shown if text.startswith("make ")}
    targets |= set(re.findall(r"`make ([\w-]+)`", README + HOWTO))
    assert {"demo", "test", "lint", "gpu-check"} <= targets
    assert targets <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))


def test_make_test_ends_as_shown() -> None:
    script = (ROOT / "tools" / "test.sh").read_text()
    (shown,) = [command.output for command in commands("README.md") if command.text == "make test" and command.output]
    assert [line.partition(":")[0] for line in shown[1:]] == re.findall(r'^echo "(\w+): +\$', script, re.MULTILINE)


def test_the_python_example(tree: Path) -> None:
    """As a doctest; what differs from one machine to another is shown as ``...``."""
    (block,) = [block for block in blocks(README) if block.language == "pycon"]
    (tree / "example.txt").write_text(block.text)
    done = run(tree, "python -m doctest -o ELLIPSIS example.txt")
    assert done.returncode == 0, f"README.md:{block.line}\n{done.stdout}{done.stderr}"


def test_links_of_documents_exist() -> None:
    for path in (ROOT / "docs").glob("*.md"):
        links = [link for link in re.findall(r"\]\(([^)#]+)\)", path.read_text()) if "://" not in link]
        assert not [link for link in links if not (path.parent / link).exists()], path


def test_environment_variables_are_documented() -> None:
    """In one place, and no others: of all files that git knows, but for documents and tests of unknown ones."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = [(ROOT / path).read_text(errors="replace") for path in listed if not path.endswith(".md")]
    used = {name for text in texts for name in re.findall(r"\bXGPU_[A-Z]+(?:_[A-Z]+)*\b", text)}
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "environment.md").read_text(), re.MULTILINE)
    assert sorted(used) == sorted(documented)


def test_what_is_decided_somewhere_is_there() -> None:
    """A row of docs/where.md names a file, and what to begin with in it."""
    places = [(file, name) for text in decided() for file, names in named(text) for name in names]
    assert len(places) > 130

    def is_there(file: str, name: str) -> bool:
        defined = rf"^(?:class|def) {name}\b|^{name}\b(?:: [^=\n]+)? ="
        return re.search(defined, (ROOT / file).read_text(), re.MULTILINE) is not None

    assert not [place for place in places if not is_there(*place)]
    assert not [text for text in decided() for file, names in named(text) if file.endswith(".py") and not names]


def test_of_several_files_a_row_says_what_each_decides() -> None:
    """So that a reader opens one of them: words stand between two links, and not ``and`` alone."""
    between = [words for text in decided() for words in LINK.split(re.sub(r"`[^`]*`", "", text))[1:-1]]
    assert len(between) > 20
    assert not [words for words in between if not set(re.findall(r"\w+", words)) - {"and"}]


def decided() -> list[str]:
    """The column of each table of docs/where.md that says where."""
    text = (ROOT / "docs" / "where.md").read_text()
    tables = re.findall(r"^\| question \|.*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [row.split(" | ")[1] for table in tables for row in table.splitlines()]


def named(text: str) -> list[tuple[str, list[str]]]:
    """The files of a row, each with the names that follow it."""
    found = re.findall(r"\]\(\.\./([^)]+)\)((?:,? `\w+`)*)", text)
    return [(file, re.findall(r"`(\w+)`", names)) for file, names in found]


def test_links_and_paths_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    tree = README.partition("\n## The tree\n")[2].partition("\n## ")[0]
    table = [path for row in re.findall(r"^\| (`.*?`) \|", tree, re.MULTILINE) for path in re.findall("`(.*?)`", row)]
    assert links
    assert len(table) > 10
    assert not [path for path in links + table if not (ROOT / path).exists()]
    anchors = {
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)", README, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= anchors


def test_every_folder_is_in_the_table() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = [Path(*package.split(".")) for package in project["packages"]]
    folders = [project["package-dir"].get(".".join(path.parts), str(path)) for path in packages]
    shown = [folder for folder in folders if folder.count("/") <= 1 and folder != "xgpu" and folder[:6] != "tools/"]
    assert not [folder for folder in shown if f"`{folder}/`" not in README]


def test_readme_is_one_sitting() -> None:
    assert len(README.splitlines()) <= 400


def test_generated_documents_are_current() -> None:
    assert not make_docs.stale(), "run python -m xgpu.tools.make_docs"


def test_make_docs_writes_what_is_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(make_docs, "DOCS", tmp_path)
    assert make_docs.main(["--check"]) == 1
    assert not list(tmp_path.iterdir())
    assert make_docs.main([]) == 0
    assert make_docs.main(["--check"]) == 0
    (tmp_path / "passes.md").write_text("old")
    assert make_docs.stale() == ["passes.md"]


def test_make_docs_needs_the_tree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_docs, "DOCS", tmp_path / "docs")
    assert make_docs.main([]) == 1
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pattern", "output", "same"),
    [
        (["a"], "a\n", True),
        (["a"], "a\nb\n", False),
        (["a", "..."], "a\nb\nc\n", True),
        (["...", "b"], "b\n", True),
        (["...", "b"], "a\n", False),
        (["a ... c"], "a b c\n", True),
        (["a ... c"], "a b\nc\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_the_comparison(pattern: list[str], output: str, same: bool) -> None:
    assert shows(pattern, output) is same
