"""Checks of the discardable ``xgpu.*`` attributes of operations, and of functions' arguments."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dtypes import MAX_ELEMENTS

MAX_THREADS_PER_BLOCK = 1024
"""Of every CUDA device; a device may allow fewer for a given kernel."""
_MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z, of every CUDA device."""


def attribute_problems(op: ir.Operation) -> Iterator[str]:
    """Yield what is wrong with the ``xgpu.*`` attributes of an operation, and if it is a function, of its arguments."""
    present = op.attributes
    for name, check in _CHECKS.items():
        if name in present and (problem := check(present[name])):
            yield f"attribute '{name}': {problem}, got {present[name]}"
            return
    yield from _alias_problems(op)
    if "arg_attrs" not in present:
        return
    for number, argument in enumerate(ir.ArrayAttr(present["arg_attrs"])):
        dictionary = ir.DictAttr(argument)
        for name, check in _ARGUMENT_CHECKS.items():
            if name in dictionary and (problem := check(dictionary[name])):
                yield f"argument {number}, attribute '{name}': {problem}, in {argument}"


def _alias_problems(function: ir.Operation) -> Iterator[str]:
    """Yield where ``xgpu.aliases`` does not name an input, of the output's type, for each output of a kernel."""
    present = function.attributes
    names = (attributes.ALIASES, attributes.INPUTS, "function_type")
    if any(name not in present for name in names) or any(_CHECKS[name](present[name]) for name in names[:2]):
        return
    aliases, inputs = attributes.int_array_of(present[names[0]]), attributes.int_of(present[names[1]])
    aliased = [number for number in aliases if number >= 0]
    got = f"got {present[names[0]]}"
    if any(number >= inputs for number in aliased) or len(set(aliased)) != len(aliased):
        yield f"attribute '{names[0]}': expected different numbers of the {inputs} inputs, or -1, {got}"
        return
    type_: Any = ir.TypeAttr(present[names[2]]).value
    if not isinstance(type_, ir.FunctionType) or not type_.results:
        # Outputs are results only as long as the program is functional.
        return
    if len(aliases) != len(type_.results) or inputs + len(aliases) > len(type_.inputs):
        yield f"attribute '{names[0]}': expected one number for each of the {len(type_.results)} outputs, {got}"
        return
    for number, output in zip(aliases, type_.inputs[inputs:], strict=False):
        if number >= 0 and type_.inputs[number] != output:
            yield f"attribute '{names[0]}': expected input {number} to be of its output's type {output}, {got}"


def _int64s(attribute: ir.Attribute) -> tuple[int, ...] | None:
    return tuple(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else None


def _range_problem(attribute: ir.Attribute) -> str | None:
    # An empty range is right: that of an index of an array without elements, in a function that is never called.
    values = _int64s(attribute)
    return None if values is not None and len(values) == 2 else "expected array<i64: lower, upper>"


def _dimensions(limits: tuple[int, int, int], most: int | None) -> Callable[[ir.Attribute], str | None]:
    """Return the check of a launch's sizes: three, positive, within ``limits``, and no more than ``most`` together."""

    def problem(attribute: ir.Attribute) -> str | None:
        values = _int64s(attribute)
        if values is None or len(values) != 3:
            return "expected array<i64: x, y, z>"
        if any(not 1 <= value <= limit for value, limit in zip(values, limits, strict=True)):
            return f"expected sizes from 1 to {limits}"
        if most is not None and math.prod(values) > most:
            return f"expected at most {most} together"
        return None

    return problem


def _aliases_problem(attribute: ir.Attribute) -> str | None:
    values = _int64s(attribute)
    return None if values is not None and min(values, default=0) >= -1 else "expected array<i64: ...> of inputs or -1"


def _outputs_problem(attribute: ir.Attribute) -> str | None:
    values = _int64s(attribute)
    return None if values is not None and min(values, default=0) >= 0 else "expected array<i64: ...> of outputs"


def _integer_problem(attribute: ir.Attribute) -> str | None:
    is_count = isinstance(attribute, ir.IntegerAttr) and str(attribute.type) == "i64" and attribute.value >= 0
    return None if is_count else "expected a count of type i64"


def _bytes_problem(attribute: ir.Attribute) -> str | None:
    is_count = isinstance(attribute, ir.IntegerAttr) and 0 <= attribute.value <= MAX_ELEMENTS
    return None if is_count else f"expected a number of bytes up to {MAX_ELEMENTS}"


def _alignment_problem(attribute: ir.Attribute) -> str | None:
    is_power = isinstance(attribute, ir.IntegerAttr) and attribute.value.bit_count() == 1 and attribute.value > 0
    return None if is_power else "expected a power of two"


def _index_bits_problem(attribute: ir.Attribute) -> str | None:
    known = isinstance(attribute, ir.IntegerAttr) and str(attribute.type) == "i64" and attribute.value in (32, 64)
    return None if known else "expected 32 : i64 or 64 : i64"


def _unit_problem(attribute: ir.Attribute) -> str | None:
    return None if isinstance(attribute, ir.UnitAttr) else "expected a unit attribute"


def _string_problem(attribute: ir.Attribute) -> str | None:
    return None if isinstance(attribute, ir.StringAttr) else "expected a string"


def _type_problem(attribute: ir.Attribute) -> str | None:
    return None if isinstance(attribute, ir.TypeAttr) else "expected a type"


def _grade_problem(attribute: ir.Attribute) -> str | None:
    is_width = isinstance(attribute, ir.IntegerAttr) and isinstance(attribute.type, ir.IntegerType)
    return None if is_width else "expected the width of a type"


def _one_of(*words: str) -> Callable[[ir.Attribute], str | None]:
    def problem(attribute: ir.Attribute) -> str | None:
        known = isinstance(attribute, ir.StringAttr) and attribute.value in words
        return None if known else f"expected {' or '.join(repr(word) for word in words)}"

    return problem


_CHECKS: dict[str, Callable[[ir.Attribute], str | None]] = {
    attributes.KERNEL: _unit_problem,
    attributes.GRID: _dimensions(MAX_GRID, None),
    attributes.BLOCK: _dimensions(_MAX_BLOCK, MAX_THREADS_PER_BLOCK),
    attributes.INPUTS: _integer_problem,
    attributes.ALIASES: _aliases_problem,
    attributes.OVERWRITES: _outputs_problem,
    attributes.SHARED_BYTES: _integer_problem,
    attributes.INDEX_BITS: _index_bits_problem,
    attributes.EMITTER: _string_problem,
    attributes.LEVEL: _string_problem,
    attributes.LEFT: _string_problem,
    attributes.FLAGS: _string_problem,
    attributes.COLD: _unit_problem,
    attributes.MANY_RESTS: _unit_problem,
    attributes.GRADE: _grade_problem,
    attributes.UNROLL: _one_of("none", "full"),
    attributes.FIRST_EXTREME: _one_of("GT", "LT"),
    attributes.COMMUTATIVE: _unit_problem,
    attributes.ORDERED: _unit_problem,
    attributes.RECURRENCE: _unit_problem,
}
_ARGUMENT_CHECKS: dict[str, Callable[[ir.Attribute], str | None]] = {
    attributes.RANGE: _range_problem,
    attributes.ELEMENT_TYPE: _type_problem,
    attributes.BYTES: _bytes_problem,
    attributes.ALIGNMENT: _alignment_problem,
}
