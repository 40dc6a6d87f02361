"""Runs the function of a block program for arrays of some shapes."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from xgpu.block_language.captured import body_of_kernel
from xgpu.block_language.coverage import check_stores
from xgpu.block_language.program import BlockProgram, NamedArrayType, Settings
from xgpu.block_language.tracing import Array, Output, Tracing, saying
from xgpu.dtypes import dtype_of_numpy
from xgpu.errors import InvalidInput, SourceLocation, Unsupported, XgpuError
from xgpu.frontend.jax_function import user_error
from xgpu.jax_internals import core


def trace_program(
    function: Callable[..., Any], types: Sequence[Any], static: Mapping[str, Any], settings: Settings
) -> tuple[BlockProgram, Any]:
    """Return the program that a function says for arrays of these types, and the tree of its outputs.

    Raises InvalidInput, at a line of the function, for what is wrong in it.
    """
    name = getattr(function, "__name__", "kernel")
    location = _place_of(function, name)
    inputs = _inputs(function, types, static, name, location)
    tracing, trees = Tracing(name), list[Any]()

    def run() -> list[Any]:
        tracing.trace = core.trace_ctx.trace
        result = function(*(Array(number, each) for number, each in enumerate(inputs)), **static)
        trees.append(_tree_of(result, tracing, name, location))
        return [value for _, value in tracing.stores]

    try:
        with saying(tracing):
            closed = jax.make_jaxpr(run)()
    except XgpuError:
        raise
    except Exception as error:
        if "__jax_array__" in str(error):
            error = TypeError(_NO_TILE).with_traceback(error.__traceback__)
        raise user_error(error, f"tracing kernel {name}", location) from error
    assert tracing.grid is not None
    program = BlockProgram(
        name,
        inputs,
        tuple(each._type for each in tracing.outputs),
        tracing.grid,
        body_of_kernel(closed, name, location),
        tuple(store for store, _ in tracing.stores),
        settings,
        location,
    )
    check_stores(program)
    return program, trees[0]


_NO_TILE = (
    "expected tiles: of an array of the kernel these are read, by its method tile; of numbers of blocks and steps they"
    " are made by block.index"
)


def _place_of(function: Callable[..., Any], name: str) -> SourceLocation:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return SourceLocation(code.co_filename, code.co_firstlineno, function=name) if code else SourceLocation("<python>")


def _inputs(
    function: Callable[..., Any], types: Sequence[Any], static: Mapping[str, Any], name: str, location: SourceLocation
) -> tuple[NamedArrayType, ...]:
    try:
        bound = inspect.signature(function).bind(*types, **static)
    except TypeError as error:
        hint = f"it is given an array, or a specification such as f32[8], for each; or set {name}.example_args"
        raise InvalidInput(f"kernel {name}: {error}; {hint}", location) from None
    names = [each for each in bound.arguments if each not in static]
    if len(names) != len(types):
        names = [f"arg{number}" for number in range(len(types))]
    found = tuple(
        NamedArrayType(called, tuple(each.shape), np.dtype(each.dtype))
        for called, each in zip(names, types, strict=True)
    )
    for each in found:
        if not all(each.shape):
            raise Unsupported(f"kernel {name}: argument '{each.name}' has no elements: {each.shape}", location)
        if dtype_of_numpy(each.dtype).kind == "complex":
            raise Unsupported(f"kernel {name}: argument '{each.name}': tiles have no complex elements", location)
    return found


def _tree_of(result: Any, tracing: Tracing, name: str, location: SourceLocation) -> Any:
    """Return the tree of the outputs that a function returns, each once, as numbers. Numbers them in that order."""
    if tracing.grid is None:
        raise InvalidInput(f"kernel {name} says nowhere how many blocks there are: block.grid(...)", location)
    leaves, tree = jax.tree.flatten(result)
    if not leaves or any(not isinstance(each, Output) for each in leaves):
        kinds = ", ".join(type(each).__name__ for each in leaves) or "nothing"
        raise InvalidInput(
            f"kernel {name}: expected its outputs to be returned, of block.output or block.store, got {kinds}", location
        )
    numbers = [each._number for each in leaves]
    if sorted(numbers) != list(range(len(tracing.outputs))):
        missing = [each._type.name for each in tracing.outputs if each._number not in numbers] or ["one"]
        raise InvalidInput(f"kernel {name}: expected each output to be returned once; {missing[0]} is not", location)
    return jax.tree.unflatten(tree, numbers)
