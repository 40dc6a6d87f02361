"""Brings any imported module to the ``stablehlo`` level: one function ``@main`` of StableHLO operations."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from xgpu import ir
from xgpu.errors import InvalidInput, Unsupported
from xgpu.frontend.checks import check_operations, operations_of
from xgpu.frontend.chlo import legalize_chlo
from xgpu.frontend.complex_constants import split_complex_constants
from xgpu.frontend.empty_values import replace_empty_values
from xgpu.frontend.entry_layouts import apply_entry_layouts
from xgpu.frontend.expansions import expand_operations
from xgpu.frontend.inline_calls import inline_calls
from xgpu.frontend.meshes import FULL_TO_SHARD, SHARD_TO_FULL, resolve_meshes
from xgpu.frontend.mhlo import replace, rewrite_mhlo
from xgpu.frontend.narrow_floats import widen_narrow_floats
from xgpu.frontend.recursive_scans import find_recursive_scans
from xgpu.frontend.resources import read_resources
from xgpu.frontend.scan_op import SCAN
from xgpu.frontend.scans import rewrite_chlo_scans, rewrite_prefix_windows
from xgpu.frontend.source_location import name_of, source_of, unsupported
from xgpu.frontend.wide_sums import widen_sums

# Custom calls that only mark how an array is placed; on one device they are the identity.
_PLACEMENT_CALLS = frozenset(
    ("Sharding", FULL_TO_SHARD, SHARD_TO_FULL, "LayoutConstraint", "annotate_device_placement")
)
# What an import attaches to operations and functions and nothing here reads.
_DROPPED_ATTRIBUTES = frozenset(
    ("mhlo.sharding", "mhlo.frontend_attributes", "xla_shape", "result_layout", "source_layout")
)
_ALIASES = "output_operand_aliases"
_TUPLE_INDICES = re.compile(r"output_tuple_indices = \[([^\]]*)\]")
_NOT_LEGALIZED = re.compile(r"failed to legalize operation '([^']*)'")
# Operations that have a form of known sizes, which takes the place of those whose sizes are constants.
_SIZED_BY_OPERANDS = tuple(
    f"stablehlo.{name}"
    for name in (
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "real_dynamic_slice",
    )
)
_WINDOWED = ("stablehlo.convolution", "stablehlo.reduce_window", "stablehlo.select_and_scatter")
_WINDOW_ATTRIBUTES = (
    *("window_strides", "padding", "window_reversal"),
    *("lhs_dilation", "rhs_dilation", "base_dilations", "window_dilations"),
)


def normalize(module: ir.Module) -> None:
    """Rewrite a StableHLO, CHLO and MHLO module in place to the ``stablehlo`` level.

    Afterwards the module holds one function, ``@main``, of StableHLO operations on arrays of known shape: calls and
    composites are inlined, fusions unwrapped, CHLO (but for `KEPT_FUNCTIONS`) and what is short for other operations
    expanded, tuples and sharding gone. Complex constants are made of real ones, and exponentials, logarithms and square
    roots of complex numbers of real functions. What combines all elements up to each is a scan, `xgpu.scan`. Arithmetic
    on floats of 8 and 4 bits is done in wider ones, and so are sums of f16 and bf16 by reductions and scans. Values
    without elements are constants.

    Raises InvalidInput if there is no entry function, and Unsupported, with the operation, its type and the user's
    source line, for what xgpu cannot represent: dynamic shapes, tokens, unknown operations, and recursion. Arrays that
    HLO text gives another layout than row-major go in and out as they lie in memory, see `entry_layouts`.
    """
    _select_main(module)
    read_resources(module)
    resolve_meshes(module)
    apply_entry_layouts(module, main_of(module))
    rewrite_mhlo(module)
    if not _has_operations(module, (SCAN,)):
        # The pass refuses regions of operations that MLIR does not know; functions beside these are checked, then go.
        _run_passes(module, "symbol-dce")
    if _has_operations(module, ("mhlo.",)):
        _run_passes(module, "hlo-legalize-to-stablehlo")
    # Before the first step that reads a constant, and again below, as CHLO's functions bring new ones.
    split_complex_constants(module)
    rewrite_chlo_scans(module)
    _run(legalize_chlo, module)
    _run_passes(module, "func.func(stablehlo-legalize-deprecated-ops{fail-on-unused=false})")
    if _has_operations(module, _SIZED_BY_OPERANDS):
        _run_passes(module, "func.func(stablehlo-canonicalize-dynamism)")
    _remove_wrappers(module)
    check_operations(module)
    _drop_empty_windows(module)
    inline_calls(module)
    expand_operations(module)
    find_recursive_scans(module)
    rewrite_prefix_windows(module)
    if split_complex_constants(module):
        _run_passes(module, "func.func(stablehlo-complex-math-expander)")
    widen_narrow_floats(module)
    widen_sums(module)
    replace_empty_values(module)
    _run_passes(module, "func.func(cse)")
    _drop_annotations(module)


def main_of(module: ir.Module) -> ir.func.FuncOp:
    """Return the function ``@main`` of a module. Raises InvalidInput if there is none."""
    for op in module.body.operations:
        if isinstance(op, ir.func.FuncOp) and op.name.value == "main":
            return op
    raise InvalidInput("the module has no function @main")


def _select_main(module: ir.Module) -> None:
    """Name the entry function ``main``, make it the only public one, and check that it has a body."""
    functions = [op for op in module.body.operations if isinstance(op, ir.func.FuncOp)]
    public = [function for function in functions if not _is_private(function)]
    named = [function for function in functions if function.name.value == "main"]
    candidates = named or public
    if len(candidates) != 1:
        names = ", ".join(f"@{function.name.value}" for function in public) or "none"
        raise InvalidInput(f"expected a function @main or exactly one public function; the public ones are: {names}")
    (main,) = candidates
    if main.is_external:
        raise InvalidInput(f"the entry function @{main.name.value} has no body", source_of(main))
    if not named:
        main.operation.attributes["sym_name"] = ir.StringAttr.get("main", module.context)
    for function in functions:
        # Private functions that nothing calls are then removed as dead.
        visibility = "public" if function == main else "private"
        function.operation.attributes["sym_visibility"] = ir.StringAttr.get(visibility, module.context)


def _is_private(function: ir.func.FuncOp) -> bool:
    attributes = function.operation.attributes
    return "sym_visibility" in attributes and ir.StringAttr(attributes["sym_visibility"]).value == "private"


def _run_passes(module: ir.Module, pipeline: str) -> None:
    """Run MLIR passes; what they refuse becomes Unsupported at the user's source line."""
    passes = ir.PassManager.parse(f"builtin.module({pipeline})", module.context)
    _run(lambda module: passes.run(module.operation), module)


def _run(rewrite: Callable[[ir.Module], None], module: ir.Module) -> None:
    try:
        rewrite(module)
    except ir.MLIRError as error:
        diagnostics = error.error_diagnostics
        if not diagnostics:
            raise Unsupported(str(error)) from None
        first = diagnostics[0]
        message = first.message.split("\n")[0]
        if (refused := _NOT_LEGALIZED.match(message)) is not None:
            name = name_of(first.location)
            message = f"{refused.group(1)}{f" ('{name}')" if name else ''}: operation not supported"
        raise Unsupported(message, source_of(first.location)) from None


def _has_operations(module: ir.Module, prefixes: tuple[str, ...]) -> bool:
    return any(op.name.startswith(prefixes) for op in operations_of(module))


def _remove_wrappers(module: ir.Module) -> None:
    """Remove operations that are the identity on one device, and take tuples apart."""
    for op in operations_of(module):
        rewrite = _WRAPPERS.get(op.name)
        if rewrite is not None:
            rewrite(op)
    for op in reversed(operations_of(module)):
        if op.name == "stablehlo.tuple" and not any(True for _ in op.results[0].uses):
            op.erase()


def _forward(op: ir.Operation) -> None:
    replace(op, list(op.operands))


def _rewrite_custom_call(op: ir.Operation) -> None:
    """Forward what only says where an array is; have results that are a tuple returned one by one."""
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target in _PLACEMENT_CALLS and len(op.operands) == len(op.results) == 1:
        # What has another type is a part of an array, of which every device has one: that is left to XLA.
        if op.operands[0].type == op.results[0].type:
            _forward(op)
    elif len(op.results) == 1 and isinstance(op.results[0].type, ir.TupleType):
        _flatten_result(op)


def _flatten_result(op: ir.Operation) -> None:
    """Replace a call that returns a tuple by one that returns its elements, and by a tuple of these."""
    type_ = ir.TupleType(op.results[0].type)
    elements = dict(_flat_elements(type_))
    attributes = {name: op.attributes[name] for name in op.attributes}
    with ir.InsertionPoint(op), op.location:
        if _ALIASES in attributes:
            attributes[_ALIASES] = ir.Attribute.parse(
                _TUPLE_INDICES.sub(lambda found: _flat_index(op, found[1], list(elements)), str(attributes[_ALIASES]))
            )
        flat = ir.Operation.create(op.name, list(elements.values()), list(op.operands), attributes)
        op.results[0].replace_all_uses_with(_tuple_of(type_, iter(flat.results)))
    op.erase()


def _flat_index(op: ir.Operation, indices: str, positions: Sequence[tuple[int, ...]]) -> str:
    """Return where the element of a tuple at ``indices`` is among results, as aliases say it: nothing for the only."""
    path = tuple(int(index) for index in indices.split(",") if index.strip())
    if path not in positions:
        raise unsupported(op, f"no array is at {list(path)} of its result, as {_ALIASES} says")
    position = positions.index(path)
    return f"output_tuple_indices = [{position if len(positions) > 1 else ''}]"


def _flat_elements(type_: ir.TupleType, outer: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], ir.Type]]:
    """Yield the positions, outer tuple's first, and types of what is in a tuple and is none."""
    for position in range(type_.num_types):
        element = type_.get_type(position)
        if isinstance(element, ir.TupleType):
            yield from _flat_elements(element, (*outer, position))
        else:
            yield (*outer, position), element


def _tuple_of(type_: ir.TupleType, elements: Iterator[ir.OpResult]) -> ir.Value:
    """Make a tuple, of tuples perhaps, of the next of ``elements``."""
    made: list[ir.Value] = []
    for position in range(type_.num_types):
        element = type_.get_type(position)
        made.append(_tuple_of(element, elements) if isinstance(element, ir.TupleType) else next(elements))
    return ir.Operation.create("stablehlo.tuple", [type_], made).results[0]


def _forward_element(op: ir.Operation) -> None:
    """Replace get_tuple_element by the element, if the tuple was made in sight."""
    producer = op.operands[0].owner
    reason = "tuples are supported only where they are made and taken apart in one function"
    if isinstance(producer, ir.Block):
        raise unsupported(op, reason)
    if producer.name != "stablehlo.tuple":
        raise unsupported(producer, reason)
    tuple_op = producer.operation
    replace(op, [tuple_op.operands[ir.IntegerAttr(op.attributes["index"]).value]])


def _forward_inner_barrier(op: ir.Operation) -> None:
    """Replace a barrier between scalars, as in what a reduction combines elements by: there is nothing to keep."""
    if op.parent is not None and op.parent.name not in _WITH_BARRIERS:
        _forward(op)


_WITH_BARRIERS = frozenset(("func.func", "stablehlo.while", "stablehlo.case", "stablehlo.if"))
_WRAPPERS: Mapping[str, Callable[[ir.Operation], None]] = {
    "stablehlo.optimization_barrier": _forward_inner_barrier,
    "stablehlo.custom_call": _rewrite_custom_call,
    "stablehlo.get_tuple_element": _forward_element,
}


def _drop_empty_windows(module: ir.Module) -> None:
    """Leave out what an operation says of its windows' dimensions in lists that are empty: that means the defaults."""
    for op in operations_of(module):
        if op.name in _WINDOWED:
            for name in _WINDOW_ATTRIBUTES:
                if name in op.attributes and not len(op.attributes[name]):  # type: ignore[arg-type]
                    del op.attributes[name]


def _drop_annotations(module: ir.Module) -> None:
    """Remove attributes that nothing after the frontend reads, so that they cannot make equal programs differ."""
    _keep_attributes(module.operation, ("sym_name",))
    # Results keep the names that JAX gave them.
    _keep_attributes(main_of(module).operation, ("sym_name", "function_type", "res_attrs"))
    for op in operations_of(module):
        for name in _attribute_names(op):
            if name in _DROPPED_ATTRIBUTES:
                del op.attributes[name]


def _keep_attributes(op: ir.Operation, kept: tuple[str, ...]) -> None:
    for name in _attribute_names(op):
        if name not in kept:
            del op.attributes[name]


def _attribute_names(op: ir.Operation) -> list[str]:
    return list(op.attributes)
