"""Finds out what kind of program a user names, and loads it with the frontend for that kind."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from xgpu.dtypes import DType, dtype_of_numpy, parse_spec
from xgpu.errors import InvalidInput, did_you_mean
from xgpu.frontend.hlo_text import from_hlo_text
from xgpu.frontend.jax_function import from_jax, user_error
from xgpu.frontend.signature import Source, check_arguments
from xgpu.frontend.stablehlo_text import from_stablehlo_text

_HLO_TEXT = re.compile(r"^\s*(?:HloModule|ENTRY)\b", re.MULTILINE)
_ANY_TEXT = re.compile(r"\n|^\s*(?:HloModule|ENTRY|module|builtin\.module|func\.func)\b")
_PYTHON_SOURCE = re.compile(r"(?P<file>.*\.py)(?::(?P<function>[^:/\\]*))?")


def load_source(
    source: str | Path | Callable[..., Any],
    arguments: Sequence[Any] = (),
    keyword_arguments: Mapping[str, Any] | None = None,
) -> Source:
    """Load a program and bring it to the ``stablehlo`` level.

    ``source`` is a JAX function; ``file.py:function``; a file of HLO text (``.hlo``, ``.txt``) or of StableHLO text
    (``.mlir``); or such text itself. Arguments are specifications (``"f32[8,128]"``), arrays or abstract arrays. A
    function called without any takes those of its attribute ``example_args``: a tuple of them, or a function that
    returns one. For a file the arguments may be left out; those given must be the ones that the file declares.

    What has a method ``own_source``, as programs of loops and of blocks that are written in Python have, gives its own
    source, at level ``loops`` or ``tiles``.

    Raises InvalidInput for anything wrong in what the user wrote, with its place if known.
    """
    if not isinstance(source, str | Path) and (callable(source) or hasattr(source, "own_source")):
        return _load_function(source, arguments, keyword_arguments or {})
    if not isinstance(source, str | Path):
        raise InvalidInput(f"expected a function, the path of a file or the text of a program, got {source!r}")
    text = str(source)
    python = _PYTHON_SOURCE.fullmatch(text)
    if python is not None:
        return _load_python(Path(python["file"]), python["function"], arguments, keyword_arguments or {})
    if keyword_arguments:
        raise InvalidInput("keyword arguments are only for JAX functions")
    loaded = _load_text(text, "<text>") if isinstance(source, str) and _ANY_TEXT.search(text) else _load_file(text)
    if arguments:
        check_arguments(loaded, [spec_of(argument) for argument in arguments])
    return loaded


def spec_of(argument: Any) -> tuple[DType, tuple[int, ...]]:
    """Return element type and shape of a specification, array or abstract array. Raises InvalidInput for others."""
    if isinstance(argument, str):
        return parse_spec(argument)
    if not hasattr(argument, "dtype") or not hasattr(argument, "shape"):
        raise InvalidInput(f"{argument!r} is neither an array nor a specification such as f32[8]")
    return dtype_of_numpy(argument.dtype), tuple(argument.shape)


def read_text(path: Path) -> str:
    """Return the text of a file of UTF-8, marked as such or not. Raises InvalidInput if it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a text file: byte {error.start} is not UTF-8") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _load_file(name: str) -> Source:
    path = Path(name)
    if path.suffix in (".hlo", ".txt"):
        return from_hlo_text(read_text(path), name, path.stem)
    if path.suffix == ".mlir":
        return from_stablehlo_text(read_text(path), name, path.stem)
    raise InvalidInput(
        f"'{name}' is not a program: expected file.py:function, file.hlo, file.txt, file.mlir or file.te"
    )


def _load_text(text: str, filename: str) -> Source:
    return from_hlo_text(text, filename) if _HLO_TEXT.search(text) else from_stablehlo_text(text, filename)


def _load_python(
    path: Path, function_name: str | None, arguments: Sequence[Any], keyword_arguments: Mapping[str, Any]
) -> Source:
    """Execute a Python file as an import would, and load one function of it."""
    read_text(path)
    with _importing_from(path.resolve().parent):
        module = _execute(path)
        function = getattr(module, function_name, None) if function_name else None
        if not callable(function) and not hasattr(function, "own_source"):
            functions = _function_names(module)
            known = ", ".join(functions) or "none"
            problem = f"'{path}' names no function"
            if function_name:
                problem = f"{path} has no function '{function_name}'{did_you_mean(function_name, functions)}"
            raise InvalidInput(f"{problem}; expected {path.name}:function; its functions are: {known}")
        return _load_function(function, arguments, keyword_arguments)


def _load_function(
    function: Callable[..., Any], arguments: Sequence[Any], keyword_arguments: Mapping[str, Any]
) -> Source:
    if hasattr(function, "own_source"):
        given = arguments or _example_arguments(function, getattr(function, "__name__", type(function).__name__))
        source: Source = function.own_source([spec_of(argument) for argument in given])
        return source
    name = getattr(function, "__name__", type(function).__name__)
    if not arguments and not keyword_arguments:
        arguments = _example_arguments(function, name)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return from_jax(function, arguments, keyword_arguments)
    try:
        signature.bind(*arguments, **keyword_arguments)
    except TypeError as error:
        hint = f"give a specification such as f32[8] for each argument, or set {name}.example_args"
        raise InvalidInput(f"{name}{signature} does not take the arguments given: {error}; {hint}") from None
    return from_jax(function, arguments, keyword_arguments)


def _example_arguments(function: Callable[..., Any], name: str) -> tuple[Any, ...]:
    examples = getattr(function, "example_args", ())
    if callable(examples):
        try:
            examples = examples()
        except Exception as error:
            raise user_error(error, f"{name}.example_args()") from error
    if not isinstance(examples, (tuple, list)):
        raise InvalidInput(f"{name}.example_args: expected a tuple, or a function that returns one, got {examples!r}")
    return tuple(examples)


def _function_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]


def _execute(path: Path) -> ModuleType:
    """Return the module that a file defines. Raises InvalidInput, at the user's line, for any exception in it."""
    name = f"xgpu_source_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look their module up by name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise user_error(error, f"loading {path}") from error
    return module


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Let imports find the files of a folder first, as they do for a script that Python runs."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
