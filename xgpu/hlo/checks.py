"""Checks that a program's operations and values are such that all later stages can handle them."""

from math import prod

from xgpu import ir
from xgpu.dtypes import MAX_ELEMENTS, dtype_of_element
from xgpu.errors import Unsupported
from xgpu.hlo.accumulator_types import check_accumulators
from xgpu.hlo.chlo import KEPT_FUNCTIONS, RAGGED, TOP_K
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.source_location import name_of, source_of, unsupported
from xgpu.structure import arguments_of, walk

_CALL_OPERATIONS = frozenset(("func.return", "func.call"))


def check_operations(module: ir.Module) -> None:
    """Refuse operations outside StableHLO and values other than arrays of known shape."""
    for top in module.body.operations:
        if top.operation.name != "func.func":
            raise unsupported(top, "only functions are supported at the top of a module")
    checked: dict[ir.Type, str | None] = {}
    for op in walk(module.operation, post_order=False)[1:]:
        is_function = op.name == "func.func" and op.parent == module.operation
        is_known = op.name.startswith("stablehlo.") or op.name in (*KEPT_FUNCTIONS, SCAN, TOP_K, RAGGED)
        if not (is_function or is_known or op.name in _CALL_OPERATIONS):
            raise unsupported(op, "not a StableHLO operation")
        if any(len(region.blocks) > 1 for region in op.regions):
            raise unsupported(op, "control flow between blocks is not supported")
        arguments = arguments_of(op)
        for value in (*op.results, *arguments):
            if value.type not in checked:
                checked[value.type] = _refusal(value.type)
            reason = checked[value.type]
            if reason is not None and is_function and isinstance(value, ir.BlockArgument):
                name = name_of(value) or f"number {value.arg_number}"
                raise Unsupported(f"argument {name} of {op.attributes['sym_name']}: {reason}", source_of(op))
            if reason is not None:
                raise unsupported(op, reason)
        if op.name == "stablehlo.remainder" and "complex" in str(op.results[0].type):
            # Neither kernels nor XLA have one, and XLA's compiler for the CPU ends the process.
            raise unsupported(op, "there is no remainder of complex numbers")
        if "called_computations" in op.attributes and len(ir.ArrayAttr(op.attributes["called_computations"])):
            raise unsupported(op, "custom calls that take functions of the program are not supported")
        check_accumulators(op)


def _refusal(of_type: ir.Type) -> str | None:
    """Return why values of this type cannot be compiled, or None if they can."""
    if str(of_type) in ("!stablehlo.token", "!mhlo.token"):
        return "tokens, which order side effects such as prints and callbacks, are not supported"
    if isinstance(of_type, ir.TupleType):
        return f"the tuple {of_type} is not supported"
    if not isinstance(of_type, ir.RankedTensorType):
        return f"a value of type {of_type} is not supported, only arrays"
    if not of_type.has_static_shape or (of_type.encoding is not None):
        return f"the shape of {of_type} is dynamic; only shapes known at compile time are supported"
    if prod(of_type.shape) > MAX_ELEMENTS:
        return f"{of_type} has more than {MAX_ELEMENTS} elements"
    try:
        dtype_of_element(of_type.element_type)
    except Unsupported as error:
        return error.message
    return None
