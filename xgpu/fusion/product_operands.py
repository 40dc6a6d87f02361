"""The dimensions of a matrix product as it reads its operands: as they lie in memory, behind transposes."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE
from xgpu.fusion.fallback import PRODUCT, VIEWS, fallback_reason, is_address_for, is_cast_for, is_read_by_kernels
from xgpu.fusion.product_orders import LabelledProduct, StoredOperand
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.structure import dtype_of, is_argument, is_result_of, producer

TRANSPOSE = "stablehlo.transpose"


def labelled_product(
    op: ir.Operation, block: ir.Block, wanted: Sequence[int] | None = None, transposes: Sequence[ir.Operation] = ()
) -> LabelledProduct:
    """Return a product of ``block`` whose dimensions are numbers: those of its result, after them the contracted ones.

    The result is read in the order ``wanted``, by ``transposes`` if there are any, else as it is.
    """
    left, right = operand_dimensions(op)
    result, batch = op.results[0], len(left.batching)
    sizes = list(shape_of(result))
    wanted = range(len(sizes)) if wanted is None else wanted
    labels = left.labels(batch, len(sizes)), right.labels(batch + len(left.own), len(sizes))
    sizes += [shape_of(op.operands[0])[dim] for dim in left.contracting]
    operands = []
    for operand, now in zip(op.operands, labels, strict=True):
        value = behind_transposes(operand)
        memory = tuple(now[i] for i in _inverse(_permutation_from(value, operand)))
        operands.append(StoredOperand(memory, now, _bytes(value), is_made(value, block)))
    read = all(is_read_by_kernels(use) for use in transposes or [op])
    bits = dtype_of(result).storage_bits
    return LabelledProduct(tuple(sizes), batch, (operands[0], operands[1]), tuple(wanted), bits, read)


def transposes_behind(value: ir.Value) -> list[ir.Operation]:
    """Return the transposes, one of the other, that ``value`` is made by, the last first."""
    found: list[ir.Operation] = []
    while is_result_of(value, TRANSPOSE):
        found.append(producer(value))
        value = found[-1].operands[0]
    return found


def behind_transposes(value: ir.Value) -> ir.Value:
    """Return what ``value`` is transposes of; ``value`` itself if it is none."""
    found = transposes_behind(value)
    return found[-1].operands[0] if found else value


def _permutation_from(value: ir.Value, transposed: ir.Value) -> list[int]:
    """Return the dimension of ``value`` for each of ``transposed``, which transposes make of it."""
    steps = []
    while transposed != value:
        steps.append(integers(producer(transposed), "permutation"))
        transposed = producer(transposed).operands[0]
    found = list(range(len(shape_of(value))))
    for permutation in reversed(steps):
        found = [found[i] for i in permutation]
    return found


def _inverse(permutation: list[int]) -> list[int]:
    return [permutation.index(i) for i in range(len(permutation))]


def _bytes(value: ir.Value) -> float:
    return math.prod(shape_of(value)) * dtype_of(value).storage_bits / 8


def is_made(value: ir.Value, block: ir.Block) -> bool:
    """Whether a kernel computes ``value`` in ``block``, and so can store it in any order."""
    is_updated = False
    while not is_argument(value) and producer(value).parent == block.owner:
        op = producer(value)
        # A slice of an array in memory is an address for the product, and an array in memory is updated there.
        is_address = is_address_for(op, PRODUCT) and not is_updated
        is_read = op.name in (TRANSPOSE, UPDATE_SLICE) or is_bitcast(op) or is_cast_for(op, PRODUCT)
        if not (is_read or is_address):
            return op.name not in (*VIEWS, SCATTER) and fallback_reason(op) is None
        is_updated |= op.name == UPDATE_SLICE
        value = op.operands[0]
    return False
