"""The result of every frontend: the normalised module, and the names, shapes and types of inputs and outputs."""

from collections.abc import Callable, Sequence
from typing import Any

from xgpu import ir
from xgpu.dtypes import DType, dtype_of_element, format_spec
from xgpu.errors import InvalidInput, SourceLocation
from xgpu.hlo.source_location import name_of
from xgpu.levels import pipeline
from xgpu.passes.framework import manager
from xgpu.passes.framework.base import main_of
from xgpu.records import dataclass


@dataclass(frozen=True)
class ArgumentSpec:
    """One array that goes into or comes out of a program."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {format_spec(self.dtype, self.shape)}"


@dataclass(frozen=True)
class Source:
    """A program at the ``stablehlo`` level.

    ``in_tree`` and ``out_tree`` are JAX's tree structures of ``(args, kwargs)`` and of the result, if a JAX function
    is where the program came from; ``arguments`` and ``results`` are their leaves in order. ``on_cpu`` makes the same
    program for the processor, None if this one runs there too.
    """

    module: ir.Module
    name: str
    arguments: tuple[ArgumentSpec, ...]
    results: tuple[ArgumentSpec, ...]
    in_tree: Any | None = None
    out_tree: Any | None = None
    on_cpu: Callable[[], "Source"] | None = None


def normalize(module: ir.Module, filename: str | None = None) -> None:
    """Rewrite a StableHLO, CHLO and MHLO module in place to the ``stablehlo`` level.

    ``filename`` is the file that it comes from: one of MLIR is what xgpu-opt repeats a failing pass on.

    Afterwards the module holds one function, ``@main``, of StableHLO operations on arrays of known shape: calls and
    composites are inlined, fusions unwrapped, CHLO (but for `KEPT_FUNCTIONS`) and what is short for other operations
    expanded, tuples and sharding gone. Complex constants are made of real ones, and exponentials, logarithms and square
    roots of complex numbers of real functions. What combines all elements up to each is a scan, `xgpu.scan`. Arithmetic
    on floats of 8 and 4 bits is done in wider ones, and so are sums of f16 and bf16 by reductions and scans. Values
    without elements are constants.

    Raises InvalidInput if there is no entry function, and Unsupported, with the operation, its type and the user's
    source line, for what xgpu cannot represent: dynamic shapes, tokens, unknown operations, and recursion. Arrays that
    HLO text gives another layout than row-major go in and out as they lie in memory, see `ApplyEntryLayouts`.
    """
    with module.context:
        steps = pipeline.normalize()
    source = f"xgpu-opt {filename}" if filename is not None and filename.endswith(".mlir") else ""
    manager.run(module, steps, manager.Instrumentation(verify="last", source=source))


def make_source(
    module: ir.Module, name: str, filename: str | None = None, in_tree: Any | None = None, out_tree: Any | None = None
) -> Source:
    """Normalise an imported module in place and describe it.

    Raises what `normalize` raises, at ``filename`` where the error knows no place of its own.
    """
    try:
        normalize(module, filename)
    except InvalidInput as error:
        if error.location is None and filename is not None:
            error.location = SourceLocation(filename)
        raise
    # XLA, which runs the reference, refuses a module without a name.
    module.operation.attributes["sym_name"] = ir.StringAttr.get(module_name(module, name), module.context)
    main = main_of(module)
    arguments = tuple(
        _spec(name_of(argument) or f"arg{index}", argument.type) for index, argument in enumerate(main.arguments)
    )
    results = tuple(_spec(name, result) for name, result in zip(_result_names(main), main.type.results, strict=True))
    return Source(module, name, arguments, results, in_tree, out_tree)


def module_name(module: ir.Module, default: str) -> str:
    """Return the name of an MLIR module without JAX's ``jit_`` in front, or the default if it has none."""
    if "sym_name" not in module.operation.attributes:
        return default
    return ir.StringAttr(module.operation.attributes["sym_name"]).value.removeprefix("jit_") or default


def check_arguments(source: Source, given: Sequence[tuple[DType, tuple[int, ...]]]) -> None:
    """Raise InvalidInput unless the given types and shapes are those of the program's arguments."""
    if len(given) != len(source.arguments):
        expected = "1 argument" if len(source.arguments) == 1 else f"{len(source.arguments)} arguments"
        raise InvalidInput(f"{source.name}: expected {expected}, got {len(given)}")
    for index, (spec, (dtype, shape)) in enumerate(zip(source.arguments, given, strict=True)):
        if (dtype, shape) != (spec.dtype, spec.shape):
            expected = format_spec(spec.dtype, spec.shape)
            raise InvalidInput(
                f"argument {index} ({spec.name}) is {expected}, but {format_spec(dtype, shape)} was given"
            )


def _spec(name: str, of_type: ir.Type) -> ArgumentSpec:
    tensor = ir.RankedTensorType(of_type)
    return ArgumentSpec(name, tuple(tensor.shape), dtype_of_element(tensor.element_type))


def _result_names(main: ir.func.FuncOp) -> list[str]:
    names = [f"result{index}" for index in range(len(main.type.results))]
    if "res_attrs" not in main.attributes:
        return names
    for index, attributes in enumerate(ir.ArrayAttr(main.attributes["res_attrs"])):
        dictionary = ir.DictAttr(attributes)
        if "jax.result_info" in dictionary and isinstance(info := dictionary["jax.result_info"], ir.StringAttr):
            names[index] = info.value or names[index]
    return names
