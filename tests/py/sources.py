"""The Python files of the package and of the tests, for tests of their structure."""

import ast
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Source:
    """One Python file: where it is, and the name it is imported by ('' for what is not in the package)."""

    path: Path
    module: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    def place(self, line: int) -> str:
        return f"{self.path}:{line}"


@dataclass(frozen=True)
class Walked:
    """What several tests ask of a file: its imports, attributes of ``xgpu`` itself, and functions with their lines."""

    imports: list[ast.Import | ast.ImportFrom]
    attributes: list[tuple[int, str]]
    functions: list[tuple[int, str, int]]


@cache
def walked(source: Source) -> Walked:
    """Walk over a file, once for all tests; its tree is not kept."""
    found = Walked([], [], [])
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "xgpu":
            found.attributes.append((node.lineno, node.attr))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            found.functions.append((node.lineno, node.name, lines))
    return found


@cache
def package_sources() -> list[Source]:
    """Every Python file of the package, by the folders that pyproject.toml names."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    sources = []
    for package, folder in setuptools["package-dir"].items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join([package, *(part for part in parts if part != "__init__")])
            sources.append(Source(path.relative_to(ROOT), name, path.read_text()))
    return sources


@cache
def sources_of_tests() -> list[Source]:
    """Every Python file of the tests."""
    return [Source(path.relative_to(ROOT), "", path.read_text()) for path in sorted((ROOT / "tests").rglob("*.py"))]
