"""The pass `apply-entry-layouts`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.errors import InvalidInput, Unsupported
from xgpu.hlo.layouts import is_row_major, layout_of
from xgpu.hlo.source_location import unsupported
from xgpu.passes.framework.base import Pass, main_of
from xgpu.records import dataclass

_PARAMETERS = "mhlo.xla_entry_computation_parameter_layouts"
_RESULTS = "mhlo.xla_entry_computation_result_layout"


@dataclass(frozen=True)
class ApplyEntryLayouts(Pass):
    """Honours the memory layouts that HLO text gives the arrays that go into and come out of a program.

    xgpu's arrays are row-major everywhere. An array of shape [4, 2] whose layout is {0,1} has its first dimension vary
    fastest in memory, which is a row-major array of shape [2, 4] transposed. So that is what ``@main`` then takes, and
    a transpose at the entry gives it the shape that the program means: callers hand over buffers as they lie in memory.
    Raises InvalidInput for layouts that do not fit the function, Unsupported for those of another kind. Needs: the
    function ``@main``.

    ```mlir
    module attributes {mhlo.xla_entry_computation_parameter_layouts = [dense<[0, 1]> : tensor<2xindex>]} {
      func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    ```
    becomes
    ```mlir
    module {
      func.func @main(%0: tensor<2x4xf32>) -> tensor<4x2xf32> {
        %x = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    ```
    """

    NAME: ClassVar[str] = "apply-entry-layouts"

    def apply(self, module: ir.Module) -> None:
        """Change the arguments and results of ``@main``, and drop the module's attributes."""
        main = main_of(module)
        block = main.operation.regions[0].blocks[0]
        returned = list(block.operations)[-1].operation
        inputs, results = list(main.type.inputs), list(main.type.results)
        for index, order in _orders(module, _PARAMETERS, "parameter", inputs):
            inputs[index] = _permuted(inputs[index], order)
            _transpose_parameter(block, index, inputs[index], order)
        for index, order in _orders(module, _RESULTS, "result", results):
            if returned.name != "func.return":
                raise unsupported(returned, "control flow between blocks is not supported")
            results[index] = _permuted(results[index], order)
            with ir.InsertionPoint(returned), returned.location:
                returned.operands[index] = ir.stablehlo.transpose(returned.operands[index], order)
        main.operation.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _transpose_parameter(block: ir.Block, index: int, type_: ir.Type, order: Sequence[int]) -> None:
    argument = block.arguments[index]
    logical = argument.type
    argument.set_type(type_)
    with ir.InsertionPoint.at_block_begin(block), argument.location:
        permutation = [order.index(dimension) for dimension in range(len(order))]
        transpose = ir.stablehlo.TransposeOp(argument, permutation, results=[logical])
    argument.replace_all_uses_except(transpose.operation.results[0], transpose.operation)


def _orders(module: ir.Module, name: str, kind: str, types: Sequence[ir.Type]) -> list[tuple[int, list[int]]]:
    """Return number and dimensions, from the slowest in memory to the fastest, of the arrays that are not row-major."""
    attributes = module.operation.attributes
    if name not in attributes:
        return []
    layouts = attributes[name]
    del attributes[name]
    if not isinstance(layouts, ir.ArrayAttr) or len(layouts) != len(types):
        raise InvalidInput(f"{name} = {layouts} does not give one layout for each {kind} of @main")
    found = []
    for index, (layout, array) in enumerate(zip(layouts, types, strict=True)):
        if not isinstance(layout, ir.DenseIntElementsAttr) or not isinstance(array, ir.RankedTensorType):
            raise Unsupported(f"{kind} {index} of @main, {array}: unknown kind of layout {layout}")
        minor_to_major = layout_of(layout)
        if sorted(minor_to_major) != list(range(array.rank)):
            raise InvalidInput(f"{kind} {index} of @main, {array}: {layout} does not order its dimensions")
        if array.has_static_shape and not is_row_major(minor_to_major, array.shape):
            found.append((index, minor_to_major[::-1]))
    return found


def _permuted(type_: ir.Type, order: Sequence[int]) -> ir.Type:
    array = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get([array.shape[dimension] for dimension in order], array.element_type)
