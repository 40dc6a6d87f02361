"""The base of passes: a frozen dataclass of options with ``apply``, in a file named after it.

The file ``passes/lower_loops.py`` holds the pass ``lower-loops``, the class ``LowerLoops``. Its options on the command
line are its fields. Nothing else registers it: `xgpu.passes.framework.registry` finds it by these names in the rooms
that it knows.
"""

import dataclasses
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Container
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from xgpu import ir
from xgpu.analysis.control_flow import planned_blocks
from xgpu.errors import InvalidInput, did_you_mean
from xgpu.hlo.checks import check_operations
from xgpu.hlo.contents import Contents
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target_machine import OptionWord

MAIN = "main"
"""The function that is the program; the others of a module are what it calls."""


@dataclass(frozen=True)
class Pass(ABC):
    """Base of all passes. A subclass sets ``NAME``, may add fields (its options, all with defaults) and rewrites."""

    NAME: ClassVar[str] = ""
    OPERATIONS: ClassVar[frozenset[str]] = frozenset()
    """Names of the operations that it acts on, ``mhlo.*`` for a dialect's; none for one that acts on any module."""

    @abstractmethod
    def apply(self, module: ir.Module) -> None:
        """Rewrite ``module`` in place. The context and an unknown location are current."""

    def has_work(self, contents: Contents) -> bool:
        """Whether the pass may change a module with these contents: the manager passes over it if not."""
        return not self.OPERATIONS or not self.OPERATIONS.isdisjoint(contents.names)

    def check(self, module: ir.Module) -> None:  # noqa: B027  # Most take any.
        """Raise `InvalidInput` for a module that is not what the pass takes. Asked for text that a person gave."""

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the pass's documentation."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def options(cls) -> tuple[dataclasses.Field[Any], ...]:
        """Return the pass's options as dataclass fields, in the order of declaration."""
        return dataclasses.fields(cls)

    @classmethod
    def from_options(cls, options: dict[str, str]) -> Self:
        """Return the pass with ``options`` as given on the command line; raises `InvalidInput` for a wrong one."""
        if missing := sorted(cls.__abstractmethods__):
            raise InvalidInput(f"pass '{cls.NAME}': the class {cls.__name__} does not define {', '.join(missing)}")
        fields = {field.name.replace("_", "-"): field for field in cls.options()}
        # To find them takes as long as the class itself, and most passes are given no options.
        hints = typing.get_type_hints(cls) if options else {}
        values: dict[str, Any] = {}
        for name, text in options.items():
            field = fields.get(name.replace("_", "-"))
            if field is None:
                known = ", ".join(sorted(fields)) or "none"
                near = did_you_mean(name, fields)
                raise InvalidInput(f"pass '{cls.NAME}' has no option '{name}'{near}; its options: {known}")
            values[field.name] = _convert(cls.NAME, name, text, hints[field.name])
        return cls(**values)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        changed = [
            f"{field.name.replace('_', '-')}={text_of(getattr(self, field.name))}"
            for field in self.options()
            if getattr(self, field.name) != field.default
        ]
        return f"{self.NAME}{{{' '.join(changed)}}}" if changed else self.NAME


@dataclass(frozen=True)
class BlockRewrite(Pass):
    """Base of rewrites of StableHLO. A subclass rewrites one block, and is called for each that kernels compute.

    These are the block of ``@main``, and after it those of its control flow: bodies of loops and branches, to any
    depth. So a rewrite never walks the program itself.
    """

    WITH_CONDITIONS: ClassVar[bool] = False
    """Whether the conditions of loops, which XLA computes, are rewritten too."""

    def apply(self, module: ir.Module) -> None:
        """Rewrite every block of the function ``main``."""
        main = next(function for function in functions(module) if function_name(function) == MAIN)
        for block in planned_blocks(main.entry_block, self.WITH_CONDITIONS):
            self.rewrite_block(block)

    def check(self, module: ir.Module) -> None:
        """Raise `InvalidInput` for a module without ``main``, or of other operations than the frontend leaves."""
        if not any(function_name(function) == MAIN for function in functions(module)):
            raise InvalidInput(f"pass '{self.NAME}' rewrites the function @{MAIN}, and the module has none")
        check_operations(module)

    @abstractmethod
    def rewrite_block(self, block: ir.Block) -> None:
        """Rewrite the operations of ``block``, not those of the blocks inside it."""


@dataclass(frozen=True)
class OperationRewrite(BlockRewrite):
    """Base of rewrites that look at operations one by one: a subclass names them and rewrites one."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Rewrite the operations of ``block`` that are of the pass's names, in their order."""
        for op in operations_of(block, self.OPERATIONS):
            with ir.InsertionPoint(op), op.location:
                self.rewrite(op)

    @abstractmethod
    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite ``op``, before which and at whose location new operations are created. It may be erased."""


@dataclass(frozen=True)
class ModuleRewrite(Pass):
    """Base of rewrites of imported modules. A subclass names operations and rewrites one, wherever it is.

    So those of every function and every region are rewritten; inner ones before those that they are in.
    """

    def apply(self, module: ir.Module) -> None:
        """Rewrite the operations of the pass's names."""
        for op in [op.operation for op in walk(module.operation) if op.name in self.OPERATIONS]:
            with ir.InsertionPoint(op), op.location:
                self.rewrite(op)

    @abstractmethod
    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite ``op``, before which and at whose location new operations are created. It may be erased."""


def operations_of(block: ir.Block, names: Container[str]) -> list[ir.Operation]:
    """Return the operations of ``block`` that have one of ``names``, in their order."""
    return [op for view in block.operations if (op := view.operation).name in names]


def text_of(value: Any) -> str:
    """Return the text of an option's value."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe_type(hint: Any) -> str:
    """Return how the help text names the type of an option: ``int``, ``true|false``, or the accepted words."""
    if typing.get_origin(hint) is Literal:
        return "|".join(typing.get_args(hint))
    if issubclass(hint, OptionWord):
        return hint.choices()
    return "true|false" if hint is bool else str(hint.__name__)


def _convert(pass_name: str, option: str, text: str, hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        raise TypeError(f"pass {pass_name}: an option has one type, {option} has {hint}")
    try:
        if hint is bool:
            return {"true": True, "1": True, "": True, "false": False, "0": False}[text.lower()]
        if typing.get_origin(hint) is Literal:
            return {word: word for word in typing.get_args(hint)}[text]
        if hint is int and int(text) < 0:
            raise ValueError
        return hint(text)
    except (KeyError, ValueError):
        expected = "a number of at least 0" if hint is int else describe_type(hint)
        raise InvalidInput(f"pass '{pass_name}', option '{option}': expected {expected}, got '{text}'") from None


def main_of(module: ir.Module) -> ir.func.FuncOp:
    """Return the function ``@main`` of a module. Raises InvalidInput if there is none."""
    for op in module.body.operations:
        if isinstance(op, ir.func.FuncOp) and op.name.value == MAIN:
            return op
    raise InvalidInput("the module has no function @main")


def functions(module: ir.Module) -> list[ir.func.FuncOp]:
    """Return the functions of ``module`` that have a body."""
    return [op for op in module.body.operations if isinstance(op, ir.func.FuncOp) and op.operation.regions[0].blocks]


def function_name(function: ir.func.FuncOp) -> str:
    """Return the symbol name of ``function``."""
    return ir.StringAttr(function.operation.attributes["sym_name"]).value
