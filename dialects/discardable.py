"""The discardable ``xgpu.*`` attributes: the values of each, the operations on which it may stand, and its meaning.

`DISCARDABLE` is the one table of them; the verifier and docs/dialect.md are made from it. What relates an attribute to
the operations around it, such as heroes to their emitter, is checked by whoever knows these: `xgpu.emit.family_table`.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from xgpu import ir
from xgpu.device import MOST_CLUSTER_BLOCKS
from xgpu.dialects import attributes
from xgpu.dialects.attribute_checks import (
    Discardable,
    OperationSet,
    float_problem,
    int64s,
    integer_problem,
    map_problem,
    one_of,
    string_problem,
    type_problem,
    unit_problem,
)
from xgpu.dialects.block.decisions import DECISIONS
from xgpu.dtypes import MAX_BYTES
from xgpu.errors import InvalidInput, did_you_mean

MAX_THREADS_PER_BLOCK = 1024
"""Threads of a block on every CUDA device; a device may allow fewer for a given kernel."""
_MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z, of every CUDA device."""


def attribute_problems(op: ir.Operation) -> Iterator[str]:
    """Yield errors in the ``xgpu.*`` attributes of an operation, and of its arguments if it is a function."""
    present = op.attributes
    for name in present:
        if name.startswith("xgpu.") and (problem := _problem_on(op, name, present[name])):
            yield problem
            return
    yield from _alias_problems(op)
    yield from _scratch_problems(op)
    yield from _workspace_problems(op)
    yield from _cluster_problems(op)
    if "arg_attrs" not in present:
        return
    for number, argument in enumerate(ir.ArrayAttr(present["arg_attrs"])):
        dictionary = ir.DictAttr(argument)
        for name, declared in ON_ARGUMENTS.items():
            if name in dictionary and (problem := declared.problem(dictionary[name])):
                yield f"argument {number}, attribute '{name}': {problem}, in {argument}"


def _problem_on(op: ir.Operation, name: str, value: ir.Attribute) -> str | None:
    declared = DISCARDABLE.get(name)
    if declared is None or declared.place is None:
        known = [name for name, each in DISCARDABLE.items() if each.place]
        near = did_you_mean(name, known, similarity=0.8)
        return f"has the unknown attribute '{name}'{near}; those of operations are {', '.join(known)}"
    if problem := declared.problem(value):
        return f"attribute '{name}': {problem}, got {value}"
    names = declared.place.names
    return None if names is None or op.name in names else f"attribute '{name}' stands on {declared.place.description}"


def _alias_problems(function: ir.Operation) -> Iterator[str]:
    """Yield an error for each output whose entry in ``xgpu.aliases`` is not an input of the output's type."""
    present = function.attributes
    names = (attributes.ALIASES, attributes.INPUTS, "function_type")
    if any(name not in present for name in names) or any(
        DISCARDABLE[name].problem(present[name]) for name in names[:2]
    ):
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


def _scratch_problems(function: ir.Operation) -> Iterator[str]:
    """Yield an error if the last input is not as many words as ``xgpu.scratch`` says, or no last output takes it."""
    present, name = function.attributes, attributes.SCRATCH
    if name not in present or integer_problem(present[name]) or not (words := attributes.scratch_of(function)):
        return
    inputs = attributes.int_of(present[attributes.INPUTS]) if attributes.INPUTS in present else 0
    aliases = int64s(present[attributes.ALIASES]) if attributes.ALIASES in present else None
    if not inputs or not aliases or aliases[-1] != inputs - 1:
        yield f"attribute '{name}': expected the last output to take the place of the last input"
        return
    type_: Any = ir.TypeAttr(present["function_type"]).value if "function_type" in present else None
    if not isinstance(type_, ir.FunctionType) or len(type_.inputs) < inputs:
        return
    last = type_.inputs[inputs - 1]
    if isinstance(last, ir.RankedTensorType) and str(last) != f"tensor<{words}xi64>":
        yield f"attribute '{name}': expected the last input to be of type tensor<{words}xi64>, got {last}"


def _workspace_problems(function: ir.Operation) -> Iterator[str]:
    """Yield an error if the last output is not as many bytes as ``xgpu.workspace`` says."""
    present, name = function.attributes, attributes.WORKSPACE
    if name not in present or integer_problem(present[name]) or not (size := attributes.workspace_of(function)):
        return
    inputs = attributes.int_of(present[attributes.INPUTS]) if attributes.INPUTS in present else 0
    type_: Any = ir.TypeAttr(present["function_type"]).value if "function_type" in present else None
    if not isinstance(type_, ir.FunctionType):
        return
    last = type_.inputs[-1] if len(type_.inputs) > inputs else None
    if last is None or (isinstance(last, ir.RankedTensorType) and str(last) != f"tensor<{size}xi8>"):
        yield f"attribute '{name}': expected the last output to be of type tensor<{size}xi8>, got {last or 'none'}"


def _cluster_problems(kernel: ir.Operation) -> Iterator[str]:
    """Yield an error if the grid of a kernel is not one of whole clusters."""
    present = kernel.attributes
    if attributes.CLUSTER not in present or attributes.GRID not in present:
        return
    cluster, grid = int64s(present[attributes.CLUSTER]), int64s(present[attributes.GRID])
    if cluster and grid and any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
        yield f"attribute '{attributes.CLUSTER}': expected divisors of the grid's sizes {grid}, got {cluster}"


def _range_problem(attribute: ir.Attribute) -> str | None:
    # An empty range is right: that of an index of an array without elements, in a function that is never called.
    values = int64s(attribute)
    return None if values is not None and len(values) == 2 else "expected array<i64: lower, upper>"


def _dimensions(limits: tuple[int, int, int], most: int | None) -> Callable[[ir.Attribute], str | None]:
    """Return the check of a launch's sizes: three, positive, within ``limits``, and no more than ``most`` together."""

    def problem(attribute: ir.Attribute) -> str | None:
        values = int64s(attribute)
        if values is None or len(values) != 3:
            return "expected array<i64: x, y, z>"
        if any(not 1 <= value <= limit for value, limit in zip(values, limits, strict=True)):
            return f"expected sizes from 1 to {limits}"
        if most is not None and math.prod(values) > most:
            return f"expected at most {most} together"
        return None

    return problem


def _aliases_problem(attribute: ir.Attribute) -> str | None:
    values = int64s(attribute)
    return None if values is not None and min(values, default=0) >= -1 else "expected array<i64: ...> of inputs or -1"


def _outputs_problem(attribute: ir.Attribute) -> str | None:
    values = int64s(attribute)
    return None if values is not None and min(values, default=0) >= 0 else "expected array<i64: ...> of outputs"


def _bytes_problem(attribute: ir.Attribute) -> str | None:
    is_count = isinstance(attribute, ir.IntegerAttr) and 0 <= attribute.value <= MAX_BYTES
    return None if is_count else f"expected a number of bytes up to {MAX_BYTES}"


def _alignment_problem(attribute: ir.Attribute) -> str | None:
    is_power = isinstance(attribute, ir.IntegerAttr) and attribute.value.bit_count() == 1 and attribute.value > 0
    return None if is_power else "expected a power of two"


def _index_bits_problem(attribute: ir.Attribute) -> str | None:
    known = isinstance(attribute, ir.IntegerAttr) and str(attribute.type) == "i64" and attribute.value in (32, 64)
    return None if known else "expected 32 : i64 or 64 : i64"


def _grade_problem(attribute: ir.Attribute) -> str | None:
    is_width = isinstance(attribute, ir.IntegerAttr) and isinstance(attribute.type, ir.IntegerType)
    return None if is_width else "expected the width of a type"


def _schedule_problem(attribute: ir.Attribute) -> str | None:
    try:
        attributes.schedule_values(attribute)
    except InvalidInput as error:
        return error.message
    return None


_KERNEL = OperationSet("the entry function of a kernel", frozenset(("func.func", "llvm.func")))
_GLOBAL = OperationSet("an `llvm.mlir.global`", frozenset(("llvm.mlir.global",)))
_FUNCTION = OperationSet("a function", _KERNEL.names)
_FUSION = OperationSet("the function of a fusion, or the entry function of its kernel", _KERNEL.names)
_PRODUCTS = frozenset(("stablehlo.dot_general", "chlo.ragged_dot"))
_PRODUCT = OperationSet("a `stablehlo.dot_general` or a `chlo.ragged_dot`", _PRODUCTS)
_CONTROL_FLOW = OperationSet(
    "a `stablehlo.while`, `case` or `if`", frozenset(("stablehlo.while", "stablehlo.case", "stablehlo.if"))
)
_SCHEDULED = frozenset(("func.func", "llvm.func")) | _PRODUCTS
_STEPS = OperationSet("an `xgpu.steps`", frozenset(("xgpu.steps",)))
_SELECT = OperationSet("a `stablehlo.select` of tiles, by a condition of rows", frozenset(("stablehlo.select",)))
_MODULE = OperationSet("a module", frozenset(("builtin.module",)))
_LOOP = OperationSet("a `stablehlo.while`", frozenset(("stablehlo.while",)))
_UPDATE = OperationSet("a `stablehlo.dynamic_update_slice`", frozenset(("stablehlo.dynamic_update_slice",)))
_REDUCTION = OperationSet("a `stablehlo.reduce`", frozenset(("stablehlo.reduce",)))

DISCARDABLE: dict[str, Discardable] = {
    each.name: each
    for each in (
        Discardable(attributes.LEVEL, _MODULE, string_problem, "The level that the module is at."),
        Discardable(
            attributes.EMITTER,
            _FUSION,
            string_problem,
            "The emitter that the planner chose for a fusion, and that made a kernel.",
        ),
        Discardable(
            attributes.SCHEDULE,
            OperationSet("the function of a fusion, the entry function of its kernel, or a matrix product", _SCHEDULED),
            _schedule_problem,
            "By which numbers the kernel's threads share its work; see `xgpu.emit.schedule`. On a product those"
            " that were measured to be the fastest.",
        ),
        Discardable(
            attributes.ALIASES,
            _FUSION,
            _aliases_problem,
            "For each output, the number of the input whose memory it starts as, or -1. The kernel updates such an"
            " output in place and never reads that input.",
        ),
        Discardable(
            attributes.HERO,
            OperationSet("an operation of a fusion"),
            unit_problem,
            "The fusion's kernel is built around this operation.",
        ),
        Discardable(
            attributes.COMMUTATIVE,
            _REDUCTION,
            unit_problem,
            "A promise that the region gives the same whichever of two elements comes first.",
        ),
        Discardable(
            attributes.FIRST_EXTREME,
            _REDUCTION,
            one_of("GT", "LT"),
            "A promise that the reduction finds the largest (`GT`) or smallest (`LT`) element and its position, and"
            " that positions rise in the order of the elements and from the initial one: of equal elements the first is"
            " to be kept.",
        ),
        Discardable(
            attributes.ORDERED,
            OperationSet("a `stablehlo.scatter`", frozenset(("stablehlo.scatter",))),
            unit_problem,
            "Updates with the same place are made one after the other, in their order.",
        ),
        Discardable(
            attributes.HELD,
            _REDUCTION,
            unit_problem,
            "Threads hold the rows that it reduces, however short they are; else what reads a short reduction computes"
            " it again.",
        ),
        Discardable(
            attributes.ELEMENTWISE,
            _UPDATE,
            unit_problem,
            "Kernels compute its elements where they need them; else it may be made in the memory of its array.",
        ),
        Discardable(attributes.RECURRENCE, _LOOP, unit_problem, "The loop is one kernel."),
        Discardable(
            attributes.ROTATED,
            _LOOP,
            unit_problem,
            "Its condition is a value of its state: before the loop it is what the body makes of the next state, of the"
            " state there.",
        ),
        Discardable(
            attributes.HOST,
            _CONTROL_FLOW,
            unit_problem,
            "The host runs the operation by launches alone: kernels compute all that it takes, and all in its blocks.",
        ),
        Discardable(
            attributes.TRIPS,
            _LOOP,
            integer_problem,
            "How often the body runs: whoever knows it need not compute the condition.",
        ),
        Discardable(
            attributes.PRODUCT,
            _PRODUCT,
            one_of(attributes.BY_WARP_GROUPS, attributes.BY_WARPS, attributes.BY_THREADS),
            "A kernel computes the product, and what follows it, by tiles, which these instructions multiply: `wgmma`,"
            " of a warp group, or `mma`, of a warp. With `fma` each thread computes elements of it, in a loop. Of a"
            " product of tiles it is set by assign-products.",
        ),
        Discardable(
            attributes.JOINED,
            _PRODUCT,
            integer_problem,
            "One kernel computes all products of a left operand that have this number, of right operands of one type.",
        ),
        Discardable(
            attributes.PROLOGUE,
            _PRODUCT,
            one_of(attributes.LEFT, attributes.RIGHT),
            "The kernel of the product computes this operand, element by element, on its way from memory.",
        ),
        Discardable(
            attributes.CANDIDATE,
            _PRODUCT,
            integer_problem,
            "The product's number among those that kernels can compute, where that is to be measured.",
        ),
        Discardable(
            attributes.MEASURED,
            _PRODUCT,
            string_problem,
            "How long the product takes with what follows it, as measured before it was chosen what computes it.",
        ),
        Discardable(
            attributes.EXPECTED, _PRODUCT, string_problem, "The estimate by which it was chosen what computes it."
        ),
        Discardable(
            attributes.FALLBACK,
            OperationSet("an operation of `@main`"),
            string_problem,
            "The operation falls back to XLA though kernels could compute it; the value says why.",
        ),
        Discardable(
            attributes.GRADE,
            OperationSet("a function of f32"),
            _grade_problem,
            "The result is then rounded to a narrower type: that type's width, 16 for bf16.",
        ),
        Discardable(
            attributes.WEIGHT,
            OperationSet("an exponential of f32, a power of two, or a hyperbolic tangent and what divides by its cap"),
            unit_problem,
            "The result is one of several weights, of which the largest is 1: errors of 2^-18 of that are none at all. "
            "Or it caps a logit: errors of 2^-21 of 1 are none.",
        ),
        Discardable(attributes.RARE, _SELECT, unit_problem, "What hardly any row chooses: threads branch on it."),
        Discardable(
            attributes.VISIBLE,
            _STEPS,
            map_problem,
            "From the block's numbers, and the limits of the steps, to the first step that changes what is carried, and"
            " the one after the last; of several of these the first. They may lie outside of the steps that there are."
            " Of what is `xgpu.hidden`, others may change it, too; into arrays others write zeros.",
        ),
        Discardable(
            attributes.HIDDEN,
            _STEPS,
            float_problem,
            "The logits of keys that a row does not see. Other steps than the visible ones change what is carried for"
            " rows whose largest logit is not far above it.",
        ),
        *DECISIONS,
        Discardable(attributes.KERNEL, _KERNEL, unit_problem, "The function is the entry function of a kernel."),
        Discardable(attributes.GRID, _KERNEL, _dimensions(MAX_GRID, None), "Blocks of the launch."),
        Discardable(attributes.BLOCK, _KERNEL, _dimensions(_MAX_BLOCK, MAX_THREADS_PER_BLOCK), "Threads of a block."),
        Discardable(
            attributes.CLUSTER,
            _KERNEL,
            _dimensions((MOST_CLUSTER_BLOCKS,) * 3, MOST_CLUSTER_BLOCKS),
            "Blocks of a cluster: they run at once, and reach each other's shared memory. They divide the grid.",
        ),
        Discardable(
            attributes.INPUTS,
            _KERNEL,
            integer_problem,
            "How many leading tensor parameters are read-only inputs; the others are outputs.",
        ),
        Discardable(
            attributes.OVERWRITES,
            _KERNEL,
            _outputs_problem,
            "Numbers of the outputs to whose elements several threads may store. Which of them is the last is not"
            " defined, so that this is no race.",
        ),
        Discardable(
            attributes.SCRATCH,
            _KERNEL,
            integer_problem,
            "Words of 64 bits that the kernel has for messages of its blocks: its last input, zero when it starts, and"
            " its last output, which is the same memory. Blocks then wait for those before them in the grid.",
        ),
        Discardable(
            attributes.WORKSPACE,
            _KERNEL,
            integer_problem,
            "Bytes of memory of its own that the kernel has: its last output, which holds anything when it starts.",
        ),
        Discardable(
            attributes.SHARED_BYTES,
            _KERNEL,
            integer_problem,
            "Bytes of dynamic shared memory that a launch must ask for; a kernel without it asks for none.",
        ),
        Discardable(
            attributes.SHARED_OFFSET,
            _GLOBAL,
            integer_problem,
            "The first byte of a tile in the shared memory of its block; tiles may share bytes.",
        ),
        Discardable(
            attributes.RESIDENT,
            _KERNEL,
            integer_problem,
            "Blocks that a multiprocessor has room for at once: a thread gets no more registers than that leaves.",
        ),
        Discardable(
            attributes.INDEX_BITS,
            _FUNCTION,
            _index_bits_problem,
            "Width of index arithmetic in the function: 32 or 64.",
        ),
        Discardable(
            attributes.COLD,
            _FUNCTION,
            unit_problem,
            "The function is rarely called: it is not inlined, and costs its callers no code or registers.",
        ),
        Discardable(
            attributes.MANY_RESTS,
            OperationSet("an `xgpu.loop`", frozenset(("xgpu.loop",))),
            unit_problem,
            "The peeled remainder of this loop, a partial vector, is unrolled too, because every row executes it.",
        ),
        Discardable(
            attributes.UNROLL,
            OperationSet("a loop, or its branch back"),
            one_of("none", "full", attributes.EARLY),
            "`none` keeps the loop rolled, `full` asks LLVM to unroll it, `early` has unroll-loops do it in any case.",
        ),
        Discardable(
            attributes.AWAITS,
            OperationSet("an `llvm.load`", frozenset(("llvm.load",))),
            unit_problem,
            "A word of a message is read again until it was published, which only a block before this one does.",
        ),
        Discardable(
            attributes.CONVERGENT,
            OperationSet("an `llvm.inline_asm`", frozenset(("llvm.inline_asm",))),
            unit_problem,
            "Threads of a warp execute it together: it must not be moved to where fewer of them do.",
        ),
        Discardable(
            attributes.FLAGS,
            OperationSet("an operation of the LLVM dialect"),
            string_problem,
            "Its overflow or no-wrap flags as LLVM spells them, such as `nsw nuw` or `inbounds`. The bindings can"
            " neither set nor read the flags that the operation itself has.",
        ),
        Discardable(attributes.RANGE, None, _range_problem, "The inclusive range of an index parameter: lower, upper."),
        Discardable(attributes.CALLED, None, string_problem, "The name of an array of a program of loops."),
        Discardable(
            attributes.ACCESS,
            None,
            one_of("in", "out", "inout"),
            "What a program of loops does with an array: reads it, makes it, or changes it.",
        ),
        Discardable(
            attributes.ELEMENT_TYPE,
            None,
            type_problem,
            "The complex type of a tensor parameter whose elements are held as integers of their bits.",
        ),
    )
}
"""Every ``xgpu.*`` attribute that is none of an operation of the dialect, by name."""

ON_ARGUMENTS: dict[str, Discardable] = {
    each.name: each
    for each in (
        *(each for each in DISCARDABLE.values() if each.place is None),
        Discardable(attributes.BYTES, None, _bytes_problem, "The bytes of the array that a pointer is the address of."),
        Discardable(attributes.ALIGNMENT, None, _alignment_problem, "What a pointer is a multiple of."),
    )
}
"""The attributes of arguments, LLVM's own among them."""


def discardable_documentation() -> str:
    """Return the table of the attributes as Markdown."""
    rows = [
        f"| `{each.name}` | {each.place.description if each.place else 'an argument'} | {each.doc} |"
        for each in DISCARDABLE.values()
    ]
    return "\n".join(("| attribute | stands on | says |", "|---|---|---|", *rows, ""))
