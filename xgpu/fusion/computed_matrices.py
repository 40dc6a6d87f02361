"""Operands of matrix products that kernels compute element by element, such as weights that are dequantised."""

import math
from collections.abc import Iterator

import numpy as np

from xgpu import ir
from xgpu.analysis.heroes import is_hero
from xgpu.analysis.in_place import can_update_in_place
from xgpu.costs.products.library_products import library_product_seconds
from xgpu.costs.products.products import SHARE_OF_MEMORY
from xgpu.costs.sectors import passes
from xgpu.costs.time import launch_bytes
from xgpu.costs.values import byte_size, elements, instructions, is_immediate
from xgpu.device import Device
from xgpu.fusion.fallback import PRODUCT, VIEWS, is_cast_for
from xgpu.fusion.loops.sums_of_products import array_of
from xgpu.fusion.product_operands import behind_transposes
from xgpu.fusion.widened_operands import is_of_xla, widening
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.tensor_cores import ALGORITHM
from xgpu.indexing.access import shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.indexing.hlo_maps import access_kind
from xgpu.indexing.tiles.product_maps import Product
from xgpu.records import dataclass
from xgpu.structure import dtype_of, is_argument, producer, users_of
from xgpu.target_machine import WARP_SIZE

_MOST_VISITED = 32
"""Operations of which a matrix is computed at most: more take longer than to store it."""
_COMPUTED = ("elementwise", "indexing", "piecewise")
_MOST_ROWS = 16
"""Rows up to which sums are looked at: a thread holds one of each for each of its columns."""
_PER_PRODUCT = 5
"""Instructions of a product and its sum, which are rounded apart, and of the row's element: as measured."""
_LEAST_GAIN, _LEAST_LAUNCHES = 1.2, 2
"""The factor, and the launches, by which storing the matrix must be expected to take longer: all are estimates.
"""


@dataclass(frozen=True)
class ComputedMatrix:
    """A computed array: the bytes of the arrays that its kernel reads, and the instructions for each element."""

    read: int
    instructions: float


def computed(value: ir.Value, reader: ir.Operation) -> ComputedMatrix | None:
    """Return how a kernel computes ``value``, of which only ``reader`` needs the elements; None if it is stored anyway.

    Stored is what XLA computes, what reductions and other heroes make, what others read too, and what takes long.
    """
    made = behind_transposes(value)
    if is_argument(made) or any(each != reader for each in _readers(made)):
        return None
    pending, seen = [made], {made}
    read, executed, is_computed = 0, 0.0, False
    while pending:
        each = pending.pop()
        if is_in_an_array(each):
            read += byte_size(each)
            continue
        op = producer(each)
        if op.name not in OPERATIONS or access_kind(op) not in _COMPUTED or len(seen) > _MOST_VISITED:
            return None
        is_computed |= op.name not in VIEWS
        executed += instructions(op) * elements(each) / elements(made)
        new = {operand for operand in op.operands if not is_immediate(operand)} - seen
        pending += new
        seen |= new
    return ComputedMatrix(read, executed) if is_computed else None


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    """Yield what reads ``value`` or views of it."""
    pending = [value]
    while pending:
        for user in users_of(pending.pop()):
            if user.name in VIEWS:
                pending += user.results
            else:
                yield user


def matrix_for_sums(op: ir.Operation, target: Device) -> int | None:
    """Return the number of the operand of a product that is better computed where it is read than stored, if one is.

    The product is then a sum for each of the few rows of the other operand, which a kernel of reductions computes. Of
    small matrices, which are written and read in less than a launch, other times count than those of memory.
    """
    if ALGORITHM in op.attributes or not all(map(elements, op.operands)):
        return None
    number = int(elements(op.operands[1]) > elements(op.operands[0]))
    few, own = shape_of(op.operands[1 - number]), operand_dimensions(op)[1 - number].own
    rows = [few[each] for each in own if few[each] > 1]
    dtypes = [dtype_of(value) for value in (*op.operands, op.results[0])]
    is_wide = any(not dtype.is_float or dtype.bits > 32 for dtype in dtypes)
    if is_wide or len(rows) > 1 or (rows and rows[0] > _MOST_ROWS):
        return None
    if 2 * byte_size(op.operands[number]) < launch_bytes(target):
        return None
    made = computed(op.operands[number], op)
    return number if made is not None and _is_faster(op, made, number, target) else None


def _is_faster(op: ir.Operation, made: ComputedMatrix, number: int, target: Device) -> bool:
    """Whether sums are expected to be clearly faster than to store the operand ``number`` for a library."""
    product, matrix = Product(op), op.operands[number]
    bandwidth = target.memory_bandwidth * SHARE_OF_MEMORY
    reduced = _sums_seconds(op, made, number, target)
    shape = product.batch, product.m, product.n, product.k
    result_bytes = max(1, dtype_of(op.results[0]).bits // 8)
    if (narrow := widened_bytes(matrix)) is not None:
        stored = library_product_seconds(shape, narrow, result_bytes, target)
    else:
        stored = (made.read + byte_size(matrix)) / bandwidth
        stored += library_product_seconds(shape, product.element_bytes, result_bytes, target)
    return stored - reduced >= max(_LEAST_LAUNCHES * target.launch_seconds, (_LEAST_GAIN - 1) * reduced)


def sums_seconds(op: ir.Operation, number: int, target: Device) -> float:
    """Return how long sums take of products by the operand of a number, which a kernel computes."""
    made = computed(op.operands[number], op)
    assert made is not None
    return _sums_seconds(op, made, number, target)


def _sums_seconds(op: ir.Operation, made: ComputedMatrix, number: int, target: Device) -> float:
    product = Product(op)
    rows = product.n if number == 0 else product.m
    each = _PER_PRODUCT + _more_passes(op, number)
    executed = elements(op.operands[number]) * (made.instructions + each * rows) / target.issue_rate
    return max(made.read / (target.memory_bandwidth * SHARE_OF_MEMORY), executed)


def _more_passes(op: ir.Operation, number: int) -> float:
    """Return how many more passes through the first-level cache a warp takes for elements of a row than for a line.

    Lanes are neighbours in the matrix, the operand ``number``: along what is summed they read elements of a row that
    lie as far apart as the other operand has them, and along anything else one element. As measured, a pass takes about
    as long as an instruction of a thread.
    """
    few, labels = array_of(op, 1 - number)
    lanes = array_of(op, number)[1][-1]
    if lanes not in labels:
        return 0.0
    place = labels.index(lanes)
    apart = math.prod(shape_of(few)[place + 1 :])
    starts = np.arange(min(WARP_SIZE, shape_of(few)[place]))
    bits = dtype_of(few).storage_bits
    return passes(apart * starts[np.newaxis], bits) - passes(starts[np.newaxis], bits)


def widened_bytes(matrix: ir.Value) -> int | None:
    """Return the bytes of the elements that XLA widens as it multiplies, without storing them; None for others."""
    made = behind_transposes(matrix)
    casts = [op for op in widening(made, is_in_an_array) if is_cast_for(op, PRODUCT)]
    narrow = min((dtype_of(op.operands[0]).storage_bits for op in casts), default=0)
    return max(1, narrow // 8) if casts else None


def is_in_an_array(value: ir.Value) -> bool:
    """Whether a kernel finds an array in memory: also those that kernels make for whatever reads them."""
    if is_argument(value):
        return True
    op = producer(value)
    return is_of_xla(op) or is_hero(op) or can_update_in_place(op)
