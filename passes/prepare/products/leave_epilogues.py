"""The pass `leave-epilogues`."""

import math
from collections.abc import Iterator, Set
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts, is_bitcast, readers
from xgpu.analysis.heroes import is_hero
from xgpu.dialects.attributes import BY_WARP_GROUPS, BY_WARPS, FALLBACK
from xgpu.emit.families.products.product import is_marked
from xgpu.fusion.fallback import CONTRACTIONS, EPILOGUE, PRODUCT, VIEWS, fallback_reason, is_kernel_gradient
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import hlo
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.indexing.hlo_maps import access_kind
from xgpu.passes.framework.base import BlockRewrite
from xgpu.records import dataclass
from xgpu.structure import behind, dtype_of, is_argument, is_constant, is_result_of, producer, users_of

_TYPES = ("f16", "bf16", "f32")
"""Types of operands and results for which libraries have epilogues."""
_ENDS = ("func.return", "stablehlo.return")
_BROADCAST = "stablehlo.broadcast_in_dim"
_DILATION, _REVERSAL = "lhs_dilation", "window_reversal"


@dataclass(frozen=True)
class LeaveEpilogues(BlockRewrite):
    """Marks the epilogues that XLA's libraries fuse into a matrix product or convolution: ``relu(a * p + bias + c)``.

    Here p is the product, a a constant, bias a vector along one dimension and c an array of the product's shape; each
    may be left out. (Source: XLA's rewriters to cuBLASLt's epilogues and cuDNN's fused convolutions, which are forward
    ones and not depthwise.) Into matrix products XLA fuses any chain of elementwise operations, by kernels of its own,
    where these are faster than the library. The product itself is then never stored. That saves nothing where a single
    kernel of ours reads the epilogue's result: it could as well read the product. So only epilogues that XLA reads, or
    that are results, are marked. The attribute ``xgpu.fallback`` has the reason. Needs: products in their final form.

    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x64xf32>, tensor<64x256xf32>) -> ...
    %1 = stablehlo.add %0, %bias : tensor<512x256xf32>
    return %1 : tensor<512x256xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x64xf32>, tensor<64x256xf32>) -> ...
    %1 = stablehlo.add %0, %bias {xgpu.fallback = "XLA computes it as part of the matrix product"} : tensor<512x256xf32>
    return %1 : tensor<512x256xf32>
    ```
    """

    NAME: ClassVar[str] = "leave-epilogues"
    OPERATIONS: ClassVar[frozenset[str]] = CONTRACTIONS

    def rewrite_block(self, block: ir.Block) -> None:
        """Mark what is part of the products of ``block``, of later ones first: XLA reads them."""
        late = late_values(block)
        for view in reversed(list(block.operations)):
            op = view.operation
            if op.name in CONTRACTIONS and fallback_reason(op) is not None:
                kind = "matrix product" if op.name == PRODUCT else "convolution"
                for each in epilogue_of(op, late):
                    each.attributes[FALLBACK] = ir.StringAttr.get(EPILOGUE.format(kind))


def _may_have_epilogue(product: ir.Operation) -> bool:
    types = {dtype_of(value).hlo for value in (*product.operands, *product.results)}
    return types <= set(_TYPES) and (product.name == PRODUCT or _is_forward(product))


def _is_forward(convolution: ir.Operation) -> bool:
    """Whether XLA calls a library's forward convolution, one that is not depthwise."""
    numbers = hlo.ConvDimensionNumbers(convolution.attributes["dimension_numbers"])
    images = shape_of(convolution.operands[0])
    groups = integer(convolution, "feature_group_count")
    is_depthwise = groups > 1 and groups == images[numbers.input_feature_dimension]
    if is_depthwise or integer(convolution, "batch_group_count") > 1 or _is_reversed(convolution):
        return False
    return not is_kernel_gradient(convolution)


def _is_reversed(convolution: ir.Operation) -> bool:
    """Whether a convolution has what one by the images' gradient has: dilated images, or a kernel that is reversed."""
    attributes = convolution.attributes
    if _DILATION in attributes and any(size > 1 for size in integers(convolution, _DILATION)):
        return True
    if _REVERSAL in attributes and any(ir.DenseBoolArrayAttr(attributes[_REVERSAL])):
        return True
    return is_result_of(behind(convolution.operands[1], *VIEWS), "stablehlo.reverse")


def late_values(block: ir.Block) -> set[ir.Value]:
    """Return the results of XLA's operations and of heroes in a block, and the values computed from them."""
    late = set[ir.Value]()
    for view in block.operations:
        op = view.operation
        is_made = any(operand in late for operand in op.operands)
        if is_made or (op.name not in VIEWS and (fallback_reason(op) is not None or is_hero(op))):
            late.update(op.results)
    return late


def epilogue_of(product: ir.Operation, late: Set[ir.Value]) -> list[ir.Operation]:
    """Return what XLA computes as part of a product that is left to it; ``late`` are the `late_values` of its block."""
    if not _may_have_epilogue(product):
        return []
    epilogue = _Epilogue(product, late)
    chain = list(epilogue.operations())
    while chain and not _is_left(chain[-1].results[0], epilogue.of_library < len(chain)):
        chain.pop()
    return chain


def _is_left(end: ir.Value, by_xla_alone: bool) -> bool:
    """Whether an epilogue that ends in ``end`` is XLA's: a library computes it for nothing where XLA has to read it.

    An epilogue that only XLA's own kernels fuse is a kernel's if one reads ``end`` anyway: it then stores it as well.
    """
    found = [_is_of_xla(reader, end) for reader in readers(end)]
    return all(found) if by_xla_alone else any(found)


@dataclass
class _Epilogue:
    """The epilogue of ``product`` found so far; ``late`` are the values that `late_values` finds in its block."""

    product: ir.Operation
    late: Set[ir.Value]
    has_bias: bool = False
    has_array: bool = False
    of_library: int = 0
    """The number of operations, from the first on, that libraries have."""
    is_library: bool = True
    """Whether libraries may have the next one."""

    def operations(self) -> Iterator[ir.Operation]:
        """Yield the operations that one library call makes of the product, each the only one to read the one before."""
        value = self.product.results[0]
        is_first = True
        while (user := _only_user(value)) is not None:
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
        if self.is_library and len(others) == 1 and self._is_of_a_library(op, others[0], is_first):
            self.of_library += 1
            return True
        self.is_library = False
        return (
            self.product.name == PRODUCT
            and op.name in OPERATIONS
            and access_kind(op) == "elementwise"
            and all(self._is_read_as_stored(other, op) for other in others)
        )

    def _is_of_a_library(self, op: ir.Operation, other: ir.Value, is_first: bool) -> bool:
        """Whether ``op``, whose other operand is ``other``, is the next step that a library's epilogue has."""
        if op.name == "stablehlo.multiply":
            return is_first and _scalar_constant(other) is not None
        if op.name == "stablehlo.maximum" and _scalar_constant(other) == 0:
            self.is_library = False
            return True
        if op.name != "stablehlo.add":
            return False
        if self._is_bias(other):
            is_new, self.has_bias = not self.has_bias, True
        else:
            is_new, self.has_array = not self.has_array, True
            is_new &= self._is_stored_anyway(other, op)
        return is_new

    def _is_bias(self, value: ir.Value) -> bool:
        """Whether ``value`` is a vector along the dimension of the product's result that libraries have biases for.

        Of a matrix product that is all columns, which a reshape may have made several dimensions of.
        """
        if not is_result_of(value, _BROADCAST):
            return False
        shape = shape_of(value)
        if self.product.name == PRODUCT:
            _, right = operand_dimensions(self.product)
            dimension, sizes = len(shape) - 1, shape_of(self.product.operands[1])
            if right.batching or shape[-1:] != (math.prod(sizes[i] for i in right.own),):
                return False
        else:
            convolution = hlo.ConvDimensionNumbers(self.product.attributes["dimension_numbers"])
            dimension = convolution.output_feature_dimension
        dimensions = integers(producer(value), "broadcast_dimensions")
        along = [i for i, size in zip(dimensions, shape_of(producer(value).operands[0]), strict=True) if size > 1]
        return along == [dimension]

    def _is_stored_anyway(self, value: ir.Value, reader: ir.Operation) -> bool:
        """Whether ``value``, which ``reader`` reads, is in memory whoever makes ``reader``. A broadcast is not.

        Arguments are, what XLA or the hero of a kernel makes, and what others than ``reader`` read too: XLA, another
        epilogue, or kernels if it is `_late`. What is computed from arguments alone they compute again.
        """
        array = behind_bitcasts(value)
        if is_argument(array):
            return True
        op = producer(array)
        if op.name in VIEWS:
            return False
        if fallback_reason(op) is not None or is_hero(op):
            return True
        others = (each for each in readers(array) if each != reader)
        return any(array in self.late or _is_of_xla(each, array) or _adds_product(each) for each in others)

    def _is_read_as_stored(self, value: ir.Value, reader: ir.Operation) -> bool:
        """Whether ``value`` is stored anyway, or each element of it is a constant or one of what is."""
        value = behind(value, *VIEWS)
        return self._is_stored_anyway(value, reader) or producer(value).name in VIEWS


def _only_user(value: ir.Value) -> ir.Operation | None:
    """Return the operation of the same block that alone reads ``value``, once, and has one result of its own."""
    users = users_of(value)
    if len(users) != 1 or users[0].parent != producer(value).parent or len(users[0].results) != 1:
        return None
    return users[0]


def _scalar_constant(value: ir.Value) -> float | None:
    """Return the number that all elements of ``value`` are, None if it is not a constant of that kind."""
    value = behind(value, _BROADCAST, "stablehlo.reshape")
    if not is_constant(value):
        return None
    elements = ir.DenseElementsAttr(producer(value).attributes["value"])
    if not elements.is_splat:
        return None
    return float(ir.FloatAttr(elements.get_splat_value()).value)


def _is_of_xla(reader: ir.Operation, value: ir.Value) -> bool:
    """Whether ``reader`` of ``value`` is the end of its block, left to XLA, or runs inside what is.

    Or a product whose kernel copies tiles of it, which needs it in memory as well.
    """
    is_outside = reader.name in _ENDS or reader.parent != producer(value).parent
    return is_outside or fallback_reason(reader) is not None or is_marked(reader, BY_WARP_GROUPS, BY_WARPS)


def _adds_product(op: ir.Operation) -> bool:
    """Whether ``op`` adds to a product that is left to XLA."""
    found = (behind_bitcasts(operand) for operand in op.operands if op.name == "stablehlo.add")
    producers = (producer(value) for value in found if not is_argument(value))
    return any(each.name in CONTRACTIONS and fallback_reason(each) is not None for each in producers)
