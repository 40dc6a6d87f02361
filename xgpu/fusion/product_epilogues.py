"""Leaves to XLA what its libraries compute as part of a matrix product or convolution: ``relu(a * p + bias + c)``.

Here p is the product, a a constant, bias a vector along one dimension and c an array of the product's shape; each may
be left out. (Source: XLA's rewriters to cuBLASLt's epilogues and cuDNN's fused convolutions.) Of products of 16-bit
floats XLA makes any single elementwise operation a part, by kernels of its own. The product itself is then never
stored. That saves nothing where a single kernel of ours reads what comes out: it could as well read the product. So
this is done where XLA reads that, or where it is a result.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.attributes import LEFT
from xgpu.dtypes import dtype_of_element
from xgpu.frontend.stablehlo_builder import element_of, hlo
from xgpu.fusion.bitcasts import behind_bitcasts, is_bitcast
from xgpu.fusion.heroes import hero_kind
from xgpu.fusion.left import CONTRACTIONS, PRODUCT, VIEWS, reason_to_leave
from xgpu.fusion.regions import is_constant, maker, planned_blocks
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.hlo_maps import access_kind
from xgpu.options import Options

_TYPES = ("f16", "bf16", "f32")
"""Types of results for which libraries have epilogues."""
_REASON = "XLA computes it as part of the {}"
_ENDS = ("func.return", "stablehlo.return")
_BROADCAST = "stablehlo.broadcast_in_dim"


def leave_epilogues(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Mark the operations of a function that are part of products, those of later products first: XLA reads them."""
    for block in planned_blocks(main.entry_block):
        for view in reversed(list(block.operations)):
            op = view.operation
            if op.name in CONTRACTIONS and reason_to_leave(op) is not None:
                _leave_epilogue(op)


def _leave_epilogue(product: ir.Operation) -> None:
    if dtype_of_element(element_of(product.results[0])).hlo not in _TYPES:
        return
    chain = list(_Epilogue(product).operations())
    while chain and not _is_read_by_xla(chain[-1]):
        chain.pop()
    kind = "matrix product" if product.name == PRODUCT else "convolution"
    for op in chain:
        op.attributes[LEFT] = ir.StringAttr.get(_REASON.format(kind))


@dataclass
class _Epilogue:
    """What has been found so far to follow ``product``."""

    product: ir.Operation
    has_bias: bool = False
    has_array: bool = False
    is_done: bool = False

    def operations(self) -> Iterator[ir.Operation]:
        """Yield the operations that one library call makes of the product, each the only one to read the one before."""
        value = self.product.results[0]
        is_first = True
        while (user := _only_user(value)) is not None and not self.is_done:
            if not is_bitcast(user):
                if not self._takes(user, value, is_first):
                    return
                yield user
                is_first = False
            elif user.name == _BROADCAST or self.product.name != PRODUCT:
                return
            value = user.results[0]

    def _takes(self, op: ir.Operation, value: ir.Value, is_first: bool) -> bool:
        """Whether ``op``, which reads ``value``, is the next step of the epilogue."""
        others = [operand for operand in op.operands if operand != value]
        if len(others) == 1 and self._is_of_a_library(op, others[0], is_first):
            return True
        self.is_done = True
        is_narrow = dtype_of_element(element_of(self.product.results[0])).bits == 16
        return (
            is_narrow
            and is_first
            and self.product.name == PRODUCT
            and access_kind(op) == "elementwise"
            and all(map(_is_read_as_stored, others))
        )

    def _is_of_a_library(self, op: ir.Operation, other: ir.Value, is_first: bool) -> bool:
        """Whether ``op``, whose other operand is ``other``, is the next step that a library's epilogue has."""
        if op.name == "stablehlo.multiply":
            return is_first and _scalar_constant(other) is not None
        if op.name == "stablehlo.maximum" and _scalar_constant(other) == 0:
            self.is_done = True
            return True
        if op.name != "stablehlo.add":
            return False
        if self._is_bias(other):
            is_new, self.has_bias = not self.has_bias, True
        else:
            is_new, self.has_array = not self.has_array, True
            is_new &= _is_stored_anyway(other)
        return is_new

    def _is_bias(self, value: ir.Value) -> bool:
        """Whether ``value`` is a vector along the dimension of the product's result that libraries have biases for."""
        if isinstance(value.owner, ir.Block) or maker(value).name != _BROADCAST:
            return False
        rank = len(shape_of(value))
        if self.product.name == PRODUCT:
            numbers = hlo.DotDimensionNumbers(self.product.attributes["dot_dimension_numbers"])
            dimension = rank - 1
            if list(numbers.lhs_batching_dimensions):
                return False
        else:
            convolution = hlo.ConvDimensionNumbers(self.product.attributes["dimension_numbers"])
            dimension = convolution.output_feature_dimension
        dimensions = integers(maker(value), "broadcast_dimensions")
        along = [i for i, size in zip(dimensions, shape_of(maker(value).operands[0]), strict=True) if size > 1]
        return along == [dimension]


def _only_user(value: ir.Value) -> ir.Operation | None:
    """Return the operation of the same block that alone reads ``value``, once, and has one result of its own."""
    users = [use.owner.operation for use in value.uses]
    if len(users) != 1 or users[0].parent != maker(value).parent or len(users[0].results) != 1:
        return None
    return users[0]


def _scalar_constant(value: ir.Value) -> float | None:
    """Return the number that all elements of ``value`` are, None if it is not a constant of that kind."""
    while not isinstance(value.owner, ir.Block) and maker(value).name in (_BROADCAST, "stablehlo.reshape"):
        value = maker(value).operands[0]
    if not is_constant(value):
        return None
    elements = ir.DenseElementsAttr(maker(value).attributes["value"])
    if not elements.is_splat:
        return None
    return float(ir.FloatAttr(elements.get_splat_value()).value)


def _is_stored_anyway(value: ir.Value) -> bool:
    """Whether ``value`` is an argument, read by several operations, or made by one whose results are stored.

    A broadcast is not.
    """
    array = behind_bitcasts(value)
    if isinstance(array.owner, ir.Block):
        return True
    op = maker(array)
    if op.name in VIEWS:
        return False
    return reason_to_leave(op) is not None or hero_kind(op) is not None or len(list(array.uses)) > 1


def _is_read_as_stored(value: ir.Value) -> bool:
    """Whether ``value`` is stored anyway, or each element of it is a constant or one of what is."""
    while not isinstance(value.owner, ir.Block) and maker(value).name in VIEWS and maker(value).operands:
        value = maker(value).operands[0]
    return _is_stored_anyway(value) or maker(value).name in VIEWS


def _is_read_by_xla(op: ir.Operation) -> bool:
    """Whether the result of ``op`` is a result of its block, or read by what is left to XLA or runs inside that."""
    pending = list(op.results)
    while pending:
        for user in (use.owner.operation for use in pending.pop().uses):
            if is_bitcast(user) and user.parent == op.parent:
                pending += user.results
            elif user.name in _ENDS or user.parent != op.parent or reason_to_leave(user) is not None:
                return True
    return False
