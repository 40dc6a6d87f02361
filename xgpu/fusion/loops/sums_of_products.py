"""Contractions that use each element of an operand once, as products and their sums."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.dtypes import dtype_named
from xgpu.hlo.stablehlo_builder import broadcast, convert, fill_region, hlo, reshape, splat, tensor
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.structure import dtype_of, element_of, is_result_of, producer


def length_of_sums(op: ir.Operation) -> int:
    """Return how many products each result of a contraction sums up."""
    return math.prod(interval.size for interval in accesses(op)[0].map.symbols)


def uses_elements_once(op: ir.Operation) -> bool:
    """Whether a contraction of numbers multiplies no more pairs than an array of it has elements.

    So does a product with a vector, or with one for each index of a batch, and one that sums nothing. False if there
    are no pairs.
    """
    arrays = (*op.operands, op.results[0])
    pairs = length_of_sums(op) * math.prod(shape_of(op.results[0]))
    is_of_numbers = all(dtype_of(value).kind != "bool" for value in arrays)
    return is_of_numbers and 0 < pairs <= max(math.prod(shape_of(value)) for value in arrays)


def array_of(op: ir.Operation, number: int) -> tuple[ir.Value, list[int]]:
    """Return the array that an operand has the elements of, before it is transposed, and what its dimensions are.

    These are numbers: those of the result's dimensions, and after them those that are contracted.
    """
    value, map_ = op.operands[number], accesses(op)[number].map
    places = [expr.variables() for expr in map_.results]
    labels = [next(iter(dims)) if dims else len(map_.dims) + next(iter(symbols)) for dims, symbols in places]
    if not is_result_of(value, "stablehlo.transpose"):
        return value, labels
    permutation = integers(producer(value), "permutation")
    return producer(value).operands[0], [labels[permutation.index(source)] for source in range(len(labels))]


def sum_of_products(op: ir.Operation, first: Sequence[int] = ()) -> ir.Value:
    """Return the result of a contraction; floats of at most 32 bits are multiplied and added in f32.

    The dimensions of the products are ``first``, numbers as `array_of` has them, and then the others in their order,
    but for those of size 1.
    """
    result, element = op.results[0], type_of_sums(op)
    kept = len(shape_of(result))
    sizes = [*shape_of(result), *(interval.size for interval in accesses(op)[0].map.symbols)]
    others = (label for label in range(len(sizes)) if label not in first)
    order = [label for label in (*first, *others) if sizes[label] > 1]
    shape = [sizes[label] for label in order]
    factors = []
    for number in range(len(op.operands)):
        array, labels = array_of(op, number)
        long = [label for label in labels if label in order]
        flat = reshape(convert(array, element), [sizes[label] for label in long])
        factors.append(flat if long == order else broadcast(flat, shape, [order.index(label) for label in long]))
    total = _summed(hlo.multiply(*factors), [place for place, label in enumerate(order) if label >= kept])
    left = [label for label in order if label < kept]
    ordered = total if left == sorted(left) else hlo.transpose(total, [left.index(label) for label in sorted(left)])
    return convert(reshape(ordered, shape_of(result)), element_of(result))


def type_of_sums(op: ir.Operation) -> ir.Type:
    """Return the type in which a contraction multiplies and adds."""
    arrays = (*op.operands, op.results[0])
    if not any(isinstance(element_of(value), ir.FloatType) for value in arrays):
        return element_of(op.results[0])
    widest = max(dtype_of(value).bits for value in arrays)
    return ir.Type.parse(dtype_named("f64" if widest > 32 else "f32").mlir)


def _summed(products: ir.Value, dimensions: Sequence[int]) -> ir.Value:
    if not dimensions:
        return products
    shape, element = shape_of(products), element_of(products)
    total = ir.Operation.create(
        "stablehlo.reduce",
        results=[tensor([size for i, size in enumerate(shape) if i not in dimensions], element)],
        operands=[products, splat(0, tensor([], element))],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(list(dimensions))},
        regions=1,
    )
    fill_region(total, [tensor([], element)] * 2, lambda values: [hlo.add(*values)])
    return total.results[0]
