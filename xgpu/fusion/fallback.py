"""Operations that fall back to XLA, and the reasons."""

import math

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.analysis.heroes import FEW_TERMS, terms_of
from xgpu.analysis.heroes import PRODUCT as PRODUCT
from xgpu.analysis.in_place import can_update_in_place
from xgpu.dialects.attributes import FALLBACK, HOST, RECURRENCE
from xgpu.dialects.attributes import PRODUCT as PRODUCT_MARK
from xgpu.dialects.chain import CHAIN
from xgpu.errors import Unsupported
from xgpu.hlo.chlo import RAGGED
from xgpu.hlo.operations import OPERATIONS, without_code
from xgpu.hlo.source_location import unsupported
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.hlo_maps import explanation
from xgpu.structure import dtype_of, is_constant, nested, producer, users_of

VIEWS = frozenset(name for name, operation in OPERATIONS.items() if operation.is_view)
"""Operations that XLA folds into their consumers, such as a matrix product."""

_CONVOLUTION = "stablehlo.convolution"
FOLDED = {_CONVOLUTION: VIEWS | {"stablehlo.reverse", "stablehlo.pad"}}
"""Operations that XLA folds into a consumer that falls back to it, beyond `VIEWS`, by the consumer's name.

A convolution whose kernel is reversed is the gradient by the images, for which cuDNN has kernels of its own.
"""
DYNAMIC_SLICE = "stablehlo.dynamic_slice"
_SLICE = "stablehlo.slice"
_ALIGNMENT = 128
"""Alignment in bytes that XLA's GPU compiler requires of each buffer."""
BARRIER = "stablehlo.optimization_barrier"
CONTRACTIONS = frozenset((PRODUCT, RAGGED, _CONVOLUTION))
"""Sums of products: each element of an operand is part of many results."""
_TILE_TYPES = ("bf16", "f16", "f32")
"""Elements to which XLA's kernels of matrix products convert tiles."""
_FEW_PRODUCTS = 1 << 20
"""Multiplications up to which a library call costs more than plain loops."""
_SHORT_SUM = 128
"""Products of a sum up to which that holds: a thread waits some 600 cycles for the operands of every eight."""
_SHORT_SUM_OF_LIBRARIES = 32
"""The same for matrix products for which XLA has fast kernels, of floats and of signed bytes."""


EPILOGUE = "XLA computes it as part of the {}"
"""The reason of what is left to a library with the product before it."""


def nothing_to_compile(planned: ir.Module) -> Unsupported:
    """Return the error for a program of level ``fusions`` without kernels: why its first operation needs XLA."""
    for op in nested(planned.operation):
        is_operation = op.name.startswith(("stablehlo.", "chlo."))
        is_work = is_operation and op.name not in (*VIEWS, *CONTROL_FLOW, "stablehlo.return")
        if is_work and (reason := fallback_reason(op)) is not None:
            return unsupported(op, f"{reason}; the program has no kernels, as all of it is left to XLA")
    return Unsupported("the program has no kernels: it only counts, or returns what it is given")


def fallback_reason(op: ir.Operation) -> str | None:
    """Return why ``op`` falls back to XLA; None if kernels compute it."""
    if isinstance(planned := op.attributes.get(FALLBACK), ir.StringAttr):
        return planned.value
    if RECURRENCE in op.attributes or PRODUCT_MARK in op.attributes or op.name == CHAIN:
        return None
    if op.name in CONTROL_FLOW:
        what = "control flow, run by launches" if HOST in op.attributes else "control flow"
        return f"{what}; the blocks it runs are compiled"
    if op.name == BARRIER:
        return "a barrier: what is computed again after it must not be taken from before it"
    if op.name in CONTRACTIONS and not _is_small(op):
        return "matrix multiplication, for which XLA has libraries"
    is_known = op.name in OPERATIONS
    if not is_known and not can_update_in_place(op):
        return f"operation not supported{explanation(op)}"
    is_computed = len(op.regions) or (is_known and OPERATIONS[op.name].kind == "elementwise")
    return without_code(op) if is_computed else None


def is_made_by_kernels(value: ir.Value) -> bool:
    """Whether each kernel that reads ``value`` makes it for itself: a constant that is not left to XLA."""
    return is_constant(value) and FALLBACK not in producer(value).attributes


def is_address_for(op: ir.Operation, reader: str) -> bool:
    """Whether XLA passes an address for ``op``, a slice of an array in memory, to its consumer called ``reader``.

    It does for matrix products, of a slice that is contiguous and begins where buffers may.
    """
    if reader != PRODUCT or op.name not in (DYNAMIC_SLICE, _SLICE):
        return False
    part, whole = shape_of(op.results[0]), shape_of(op.operands[0])
    if not part or not math.prod(part):
        return False
    cut = max((i for i, (size, all_) in enumerate(zip(part, whole, strict=True)) if size != all_), default=0)
    is_strided = op.name == _SLICE and part[cut] > 1 and integers(op, "strides")[cut] > 1
    bits = dtype_of(op.results[0]).storage_bits
    step = math.prod(part[cut + 1 :]) * bits
    return math.prod(part[:cut]) == 1 and not is_strided and step % (8 * _ALIGNMENT) == 0


def is_cast_for(op: ir.Operation, reader: str) -> bool:
    """Whether XLA converts an array in memory as part of an operation called ``reader``.

    It does for convolutions, whose operands cuDNN wants in layouts of its own, and for matrix products where it makes
    elements wider, as of quantised weights: kernels of its own convert tiles that they have read.
    """
    if op.name != "stablehlo.convert":
        return False
    return reader == _CONVOLUTION or (reader == PRODUCT and _is_widened_for_tiles(op))


def _is_widened_for_tiles(op: ir.Operation) -> bool:
    given, result = (dtype_of(value) for value in (op.operands[0], op.results[0]))
    is_real = given.is_float or given.is_integer
    return is_real and given.storage_bits < result.storage_bits and result.hlo in _TILE_TYPES


def is_short(op: ir.Operation, most: int = _SHORT_SUM) -> bool:
    """Whether a contraction has so few multiplications, in all and for each result, that a plain loop is as good."""
    each = terms_of(op)
    return each <= most and math.prod(shape_of(op.results[0])) * each <= _FEW_PRODUCTS


def _has_few_terms(product: ir.Operation) -> bool:
    """Whether results of a matrix product take so few terms that a library gains nothing by loading tiles once.

    Products with a vector, which use no element twice, are sums for reduce-vector-products.
    """
    terms = terms_of(product)
    result, *operands = (math.prod(shape_of(value)) for value in (product.results[0], *product.operands))
    return terms <= FEW_TERMS and terms * result > max(operands)


def _is_small(op: ir.Operation) -> bool:
    """Whether a contraction is so small that kernels compute it."""
    if op.name == RAGGED:
        return False
    if op.name == PRODUCT and _has_few_terms(op):
        return True
    return is_short(op, _SHORT_SUM_OF_LIBRARIES if has_library(op) else _SHORT_SUM)


def has_library(op: ir.Operation) -> bool:
    """Whether ``op`` is a matrix product for which XLA has more than a plain loop: of floats, or of signed bytes."""
    if op.name != PRODUCT:
        return False
    *factors, result = (dtype_of(value) for value in (*op.operands, op.results[0]))
    if all(dtype.hlo == "s8" for dtype in factors):
        return result.hlo == "s32"
    return not any(dtype.is_integer or dtype.hlo == "pred" for dtype in factors)


def is_read_by_kernels(op: ir.Operation) -> bool:
    """Whether kernels compute everything that reads the result of ``op``, so that they can read it in any order."""
    pending = list(op.results)
    seen = set(pending)
    while pending:
        for user in users_of(pending.pop()):
            is_known = user.name.startswith("stablehlo.") and user.name != "stablehlo.return"
            if not is_known or fallback_reason(user) is not None:
                return False
            if user.name in VIEWS:
                pending += [result for result in user.results if result not in seen]
                seen.update(user.results)
    return True


def is_kernel_gradient(convolution: ir.Operation) -> bool:
    """Whether a convolution slides one large array over another, as the gradient by the kernel does."""
    numbers = ir.stablehlo.ConvDimensionNumbers(convolution.attributes["dimension_numbers"])
    windows, results = shape_of(convolution.operands[1]), shape_of(convolution.results[0])
    pairs = zip(numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
    return any(windows[i] > results[j] for i, j in pairs)
