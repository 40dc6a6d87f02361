"""Finds passes by name: the pass ``lower-loops`` is the class ``LowerLoops`` of the file ``lower_loops.py``.

Passes are the files directly in the `ROOMS`; the framework and what passes share have rooms of their own.
"""

import functools
import importlib
import os
from importlib.machinery import all_suffixes
from types import ModuleType

from xgpu import ir, passes
from xgpu.errors import CompilerError, InvalidInput, did_you_mean
from xgpu.passes import blocks, legalize, lower, nests, normalize, prepare
from xgpu.passes.framework.acts_on import WaitingPass, known_passes
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.manager import MlirPass, Step, is_mlir_pass
from xgpu.passes.prepare import concatenations, constants, control, layouts, library, products, reductions, updates

ROOMS: tuple[ModuleType, ...] = (
    legalize,
    normalize,
    prepare,
    concatenations,
    constants,
    control,
    layouts,
    library,
    products,
    reductions,
    updates,
    nests,
    blocks,
    passes,
    lower,
)
"""The packages whose files are passes. A pass has one name in all of them."""
USUAL_MLIR_PASSES = (
    "canonicalize",
    "cse",
    "loop-invariant-code-motion",
    "sccp",
    "symbol-dce",
    "chlo-legalize-to-stablehlo",
)
"""Passes of MLIR and StableHLO that help texts name, and that a misspelt name may mean: MLIR lists none of its own."""


def pass_class(name: str) -> type[Pass] | None:
    """Return the pass called ``name``, or None if xgpu has none of that name."""
    stem = name.replace("-", "_")
    if "_" in name or stem not in _stems():
        return None
    module = importlib.import_module(f"{_stems()[stem]}.{stem}")
    found = getattr(module, _class_name(stem), None)
    return found if isinstance(found, type) and issubclass(found, Pass) and name == found.NAME else None


def _class_name(stem: str) -> str:
    return "".join(word.capitalize() for word in stem.split("_"))


def all_passes() -> list[type[Pass]]:
    """Return every pass of xgpu, by name."""
    classes = (pass_class(stem.replace("_", "-")) for stem in sorted(_stems()))
    return [cls for cls in classes if cls is not None]


@functools.cache
def _stems() -> dict[str, str]:
    """Return the files of the rooms, each with its room."""
    suffixes = tuple(all_suffixes())
    return {
        name.partition(".")[0]: room.__name__
        for room in ROOMS
        for folder in room.__path__
        for name in os.listdir(folder)
        if name.endswith(suffixes) and not name.startswith("__init__.")
    }


def _loaded(name: str, options: dict[str, str]) -> Pass:
    """Return the pass that the table of what passes act on has; raises `CompilerError` if there is no such one."""
    if (cls := pass_class(name)) is None:
        raise CompilerError(_misnamed(name) or f"there is no pass '{name}': run python -m xgpu.tools.make_docs")
    return _checked(cls).from_options(options)


def _checked(cls: type[Pass]) -> type[Pass]:
    """Return a pass; raises `CompilerError` if it acts on more than the table says: it would be passed over."""
    known = known_passes().get(cls.NAME)
    if known is not None and not (cls.OPERATIONS and cls.OPERATIONS.issubset(known.operations)):
        raise CompilerError(f"pass '{cls.NAME}' and acts_on.py differ: run python -m xgpu.tools.make_docs")
    return cls


def parse_pipeline(text: str, is_known: bool = False) -> list[Step]:
    """Parse ``pass{option=value option=value},pass,...`` or ``builtin.module(...)`` into steps.

    Names that are not ours are MLIR's. Passes nested in ``func.func(...)`` are run on all functions, since ours take
    modules. Raises `InvalidInput` for unknown passes and options and for unbalanced brackets. A text that ``is_known``
    is a list of ours: its passes are imported when they first have work, and MLIR is not asked whether it has the rest.
    """
    steps: list[Step] = []
    for item in _split(text):
        name, options, nested = _parts(item)
        if nested is not None and name in ("builtin.module", "func.func"):
            inner = parse_pipeline(nested, is_known)
            only_mlir = all(isinstance(step, MlirPass) for step in inner)
            steps += [MlirPass(item)] if only_mlir and name == "func.func" else inner
        elif nested is not None and name != "any" and not _is_operation(name):
            raise InvalidInput(f"pipeline '{item}': there is no operation '{name}' to run passes in")
        elif is_known and name in known_passes():
            steps.append(WaitingPass(name, tuple(_options(name, options).items()), _loaded))
        elif (cls := pass_class(name)) is not None:
            steps.append(_checked(cls).from_options(_options(name, options)))
        elif is_known or is_mlir_pass(item):
            steps.append(MlirPass(item))
        elif is_mlir_pass(name):
            raise InvalidInput(f"MLIR's pass '{name}' does not take '{item.removeprefix(name)}'")
        else:
            raise InvalidInput(_misnamed(name) or unknown_pass(name))
    return steps


def _is_operation(name: str) -> bool:
    """Whether MLIR knows an operation called ``name``. A context is current."""
    context = ir.Context.current
    return context is not None and context.is_registered_operation(name)


def unknown_pass(name: str) -> str:
    """Return the message for a pass that neither xgpu nor MLIR has."""
    near = did_you_mean(name, [*(cls.NAME for cls in all_passes()), *USUAL_MLIR_PASSES])
    return f"unknown pass '{name}'{near}; xgpu-opt --list-passes lists all"


def _misnamed(name: str) -> str | None:
    """Return what is wrong with the pass in the file for ``name``; None if there is no such file, or no pass in it."""
    stem = name.replace("-", "_")
    if stem not in _stems():
        return None
    room = _stems()[stem]
    module = importlib.import_module(f"{room}.{stem}")
    classes = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Pass)]
    found = [f"{each.__name__} with NAME '{each.NAME}'" for each in classes if each.__module__ == module.__name__]
    expected = f"{_class_name(stem)} with NAME '{stem.replace('_', '-')}'"
    folder = room.removeprefix("xgpu.").replace(".", "/")
    return f"{folder}/{stem}.py: expected the class {expected}, got {', '.join(found)}" if found else None


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    items, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "{(") - (character in "})")
        if depth < 0:
            raise InvalidInput(f"pipeline '{text}': unbalanced '{character}' at column {position + 1}")
        if character == "," and depth == 0:
            items.append(text[start:position])
            start = position + 1
    if depth:
        raise InvalidInput(f"pipeline '{text}': a bracket is not closed")
    items.append(text[start:])
    if items == [""]:
        return []
    if any(not item.strip() for item in items):
        raise InvalidInput(f"pipeline '{text}': expected a pass name between the commas")
    return [item.strip() for item in items]


def _parts(item: str) -> tuple[str, str, str | None]:
    """Split ``name{options}`` or ``name(nested)`` into name, options and nested pipeline."""
    if item.endswith(")") and "(" in item:
        name, _, nested = item.partition("(")
        return name.strip(), "", nested[:-1]
    if item.endswith("}"):
        name, _, options = item.partition("{")
        return name.strip(), options[:-1], None
    return item, "", None


def _options(pass_name: str, text: str) -> dict[str, str]:
    options = {}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if name in options:
            raise InvalidInput(f"pass '{pass_name}': option '{name}' is given twice")
        options[name] = value if equals else "true"
    return options
