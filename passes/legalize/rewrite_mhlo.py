"""The pass `rewrite-mhlo`."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar

from xgpu import ir
from xgpu.errors import InvalidInput
from xgpu.hlo.layouts import is_row_major, layout_of
from xgpu.hlo.source_location import source_of, unsupported
from xgpu.hlo.stablehlo_builder import hlo, inline_block, shape_of
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.records import dataclass
from xgpu.structure import body_of, replace_op

_CHLO_FUNCTIONS = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")
"""Functions that MHLO shares with CHLO."""
_OTHERS = ("fusion", "copy", "domain", "add_dependency", "bitcast", "topk")
"""Other operations of MHLO that StableHLO lacks."""


@dataclass(frozen=True)
class RewriteMhlo(ModuleRewrite):
    """Unwraps fusions, and rewrites operations of HLO that StableHLO lacks to StableHLO and CHLO.

    These are layout changes, copies, a few functions, and top-k, exact or approximate. Operations that both dialects
    have are left to legalize-mhlo. Raises Unsupported for a bitcast that is no reordering of the same bits in elements
    of one width, and InvalidInput for a fusion whose operands are not what its computation takes.
    Needs: nothing.

    ```mlir
    %0 = "mhlo.fusion"(%x) ({
    ^bb0(%a: tensor<4x2xf32>):
      %1 = "mhlo.erf"(%a) : (tensor<4x2xf32>) -> tensor<4x2xf32>
      %2 = "mhlo.copy"(%1) : (tensor<4x2xf32>) -> tensor<4x2xf32>
      mhlo.return %2 : tensor<4x2xf32>
    }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    ```
    becomes
    ```mlir
    %0 = chlo.erf %x : tensor<4x2xf32> -> tensor<4x2xf32>
    ```
    """

    NAME: ClassVar[str] = "rewrite-mhlo"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        ("stablehlo.custom_call", *(f"mhlo.{name}" for name in (*_OTHERS, *_CHLO_FUNCTIONS)))
    )

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite one operation."""
        _REWRITES[op.name](op)


def _unwrap_fusion(op: ir.Operation) -> None:
    block = op.regions[0].blocks[0]
    taken, given = ([str(value.type) for value in values] for values in (block.arguments, op.operands))
    if taken != given:
        message = f"a fusion's computation takes ({', '.join(taken)}), but its operands are ({', '.join(given)})"
        raise InvalidInput(message, source_of(op))
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, terminator = (inner.operation for inner in block.operations)
    for inner in body:
        inner.move_before(op)
    replace_op(op, list(terminator.operands))


def _forward_operands(op: ir.Operation) -> None:
    replace_op(op, list(op.operands)[: len(op.results)])


def _rename_to_chlo(op: ir.Operation) -> None:
    name = "chlo." + op.name.removeprefix("mhlo.")
    types = [result.type for result in op.results]
    renamed = ir.Operation.create(name, types, list(op.operands), loc=op.location, ip=ir.InsertionPoint(op))
    replace_op(op, list(renamed.results))


def _rename_top_k(op: ir.Operation) -> None:
    if "largest" in op.attributes and not op.attributes["largest"].value:  # type: ignore[attr-defined]
        raise unsupported(op, "the k smallest elements are not supported, only the largest")
    types = [result.type for result in op.results]
    replace_op(op, _top_k(op, types, op.attributes["k"]))


def _top_k(op: ir.Operation, types: Sequence[ir.Type], count: ir.Attribute) -> list[ir.Value[Any]]:
    """Make, before ``op``, the largest elements of its operand's rows, and their indices; return both."""
    place = ir.InsertionPoint(op)
    made = ir.Operation.create("chlo.top_k", types, list(op.operands), {"k": count}, loc=op.location, ip=place)
    return list(made.results)


def _open_call(op: ir.Operation) -> None:
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target in _TOP_K_CALLS:
        _open_top_k_call(op)
    elif target == _APPROXIMATE_TOP_K:
        _open_approximate_top_k(op)


def _open_top_k_call(op: ir.Operation) -> None:
    """Replace XLA's own call for the largest elements of rows, which only its compiler for one kind of device knows."""
    if len(op.operands) != 1 or not isinstance(op.results[0].type, ir.TupleType):
        return
    type_ = ir.TupleType(op.results[0].type)
    types = [type_.get_type(number) for number in range(type_.num_types)]
    arrays = [each for each in types if isinstance(each, ir.RankedTensorType) and each.rank]
    if len(arrays) != 2 or len(types) != 2:
        return
    with op.location:
        values = _top_k(op, types, ir.IntegerAttr.get(ir.IntegerType.get_signless(64), arrays[0].shape[-1]))
        place = ir.InsertionPoint(op)
        replace_op(op, [ir.Operation.create("stablehlo.tuple", [type_], values, ip=place).results[0]])


def _open_approximate_top_k(op: ir.Operation) -> None:
    """Replace the call for elements that are roughly the first in an order by a sort, where they are to be exact.

    The function of the order would be lost: calls alone keep functions.
    """
    settings = ir.DictAttr(op.attributes.get("mhlo.backend_config") or ir.DictAttr.get({}))
    exact = ("is_fallback", "aggregate_to_topk")
    if not all(name in settings and ir.BoolAttr(settings[name]).value for name in exact):
        return
    (order,) = ir.ArrayAttr(op.attributes["called_computations"])
    function = _symbols(op)[ir.FlatSymbolRefAttr(order).value].operation
    arrays = list(op.operands)[: len(op.results)]
    numbers = {"dimension": settings["reduction_dim"], "is_stable": ir.BoolAttr.get(True)}
    sort = ir.Operation.create("stablehlo.sort", [each.type for each in arrays], arrays, numbers, regions=1)
    arguments = body_of(function).arguments
    block = sort.regions[0].blocks.append(*(each.type for each in arguments))
    with ir.InsertionPoint(block):
        hlo.return_(inline_block(body_of(function), list(block.arguments)))
    sizes = [shape_of(result) for result in op.results]
    pairs = zip(sort.results, sizes, strict=True)
    replace_op(op, [hlo.slice(value, [0] * len(size), size, [1] * len(size)) for value, size in pairs])


def _symbols(op: ir.Operation) -> ir.SymbolTable:
    """Return the functions of the module that ``op`` is in."""
    while (parent := op.parent) is not None:
        op = parent
    return ir.SymbolTable(op)


def _expand_bitcast(op: ir.Operation) -> None:
    """Rewrite a bitcast, which reads the same memory under another shape and layout, to transposes and a reshape."""
    source_type, result_type = _tensor(op, op.operands[0]), _tensor(op, op.results[0])
    element = result_type.element_type
    source_order = _physical_order(op, "source_layout", source_type.shape)
    result_order = _physical_order(op, "result_layout", result_type.shape)
    if prod(source_type.shape) != prod(result_type.shape):
        raise unsupported(op, f"a bitcast of {source_type} changes the number of elements")
    with op.location, ir.InsertionPoint(op):
        value: ir.Value[Any] = op.operands[0]
        if source_type.element_type != element:
            if _width(source_type.element_type) != _width(element):
                raise unsupported(op, f"a bitcast of {source_type} changes the width of elements")
            value = ir.stablehlo.bitcast_convert(ir.RankedTensorType.get(source_type.shape, element), value)
        value = _transpose(value, source_order)
        physical_shape = [result_type.shape[dimension] for dimension in result_order]
        if list(ir.RankedTensorType(value.type).shape) != physical_shape:
            value = ir.stablehlo.reshape(ir.RankedTensorType.get(physical_shape, element), value)
        value = _transpose(value, [result_order.index(dimension) for dimension in range(len(result_order))])
    replace_op(op, [value])


def _transpose(value: ir.Value[Any], permutation: Sequence[int]) -> ir.Value[Any]:
    if list(permutation) == sorted(permutation):
        return value
    transposed: ir.Value[Any] = ir.stablehlo.transpose(value, list(permutation))
    return transposed


def _physical_order(op: ir.Operation, layout_name: str, shape: Sequence[int]) -> list[int]:
    """Return the dimensions from the slowest in memory to the fastest; row-major order wherever that is the same."""
    if layout_name not in op.attributes:
        return list(range(len(shape)))
    minor_to_major = layout_of(op.attributes[layout_name])
    if sorted(minor_to_major) != list(range(len(shape))):
        raise unsupported(op, f"the layout {minor_to_major} does not order the dimensions of shape {list(shape)}")
    return list(range(len(shape))) if is_row_major(minor_to_major, shape) else minor_to_major[::-1]


def _tensor(op: ir.Operation, value: ir.Value[Any]) -> ir.RankedTensorType:
    if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
        raise unsupported(op, f"a bitcast needs arrays of known shape, not {value.type}")
    return value.type


def _width(element: ir.Type) -> int:
    return element.width if isinstance(element, (ir.IntegerType, ir.FloatType)) else 0


_TOP_K_CALLS = ("TopK", "__gpu$TopK")
_APPROXIMATE_TOP_K = "ApproxTopK"
_REWRITES: Mapping[str, Callable[[ir.Operation], None]] = {
    "mhlo.fusion": _unwrap_fusion,
    "mhlo.copy": _forward_operands,
    "mhlo.domain": _forward_operands,
    "mhlo.add_dependency": _forward_operands,
    "mhlo.bitcast": _expand_bitcast,
    "mhlo.topk": _rename_top_k,
    "stablehlo.custom_call": _open_call,
} | {f"mhlo.{name}": _rename_to_chlo for name in _CHLO_FUNCTIONS}
