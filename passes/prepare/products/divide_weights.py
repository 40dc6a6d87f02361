"""The pass `divide-weights`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.attention.attention import attention_of
from xgpu.analysis.attention.places import DOT, REDUCE, SPREADS, behind, keeps_numbers
from xgpu.analysis.attention.weighted import Weighted
from xgpu.hlo.stablehlo_builder import convert, hlo
from xgpu.indexing.access import identity_map, ranges, shape_of
from xgpu.indexing.affine import constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.passes.prepare.chains.lifting import Reading, reading_of
from xgpu.passes.support.index_ops import erase_unused
from xgpu.records import dataclass
from xgpu.structure import backward_slice, copy_operation, defining_op, element_of, in_order, is_result_of, users_of

_DIVIDE = "stablehlo.divide"
_CONVERTED = frozenset(("stablehlo.convert",))
_TURNED = frozenset(("stablehlo.convert", "stablehlo.transpose"))


@dataclass(frozen=True)
class DivideWeights(BlockRewrite):
    """Divides the powers of a softmax before a product adds up rows by them, instead of the product's result.

    Programs divide the fewer numbers; attention is known by a softmax, and its kernel divides the result either way.
    All is left as it is where the product would not be attention, or where anything else reads the powers than the
    product and sums: a gradient does. Needs: run it before find-chains.

    ```mlir
    %sums = stablehlo.dot_general %powers, %v, ...
    %0 = stablehlo.divide %sums, %total : tensor<8x16xf32>
    // becomes
    %weights = stablehlo.divide %powers, %total : tensor<8x32xf32>
    %0 = stablehlo.dot_general %weights, %v, ...
    ```
    """

    NAME: ClassVar[str] = "divide-weights"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_DIVIDE,))
    find: bool = True
    """Whether kernels of attention are made: otherwise there is less to divide after the product."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Divide the powers of the products of a block."""
        for op in operations_of(block, self.OPERATIONS) if self.find else ():
            moves = _moves_behind(op)
            if moves and moves[-1].name == DOT:
                any(_divide_weights(op, moves, Weighted(moves[-1], weight)) for weight in range(2))


def _moves_behind(quotient: ir.Operation) -> list[ir.Operation]:
    """Return the operations that what is divided is turned by, the last one first, and the product that it is of.

    Only those that nothing else reads.
    """
    value, found = quotient.operands[0], list[ir.Operation]()
    while (op := defining_op(value)) is not None and op.block == quotient.block and len(users_of(value)) == 1:
        if op.name == DOT or (op.name in _TURNED and keeps_numbers(op)):
            found.append(op)
        if op.name not in _TURNED:
            break
        value = op.operands[0]
    return found


def _divide_weights(quotient: ir.Operation, moves: Sequence[ir.Operation], weighted: Weighted) -> bool:
    """Divide the weights of the product, and nothing after it, if it is attention's then; return whether it is."""
    *turns, product = moves
    powers, _ = behind((weighted.weights, identity_map(shape_of(weighted.weights))), _CONVERTED)
    divisor = _divisor(quotient, product, weighted) if _are_powers(powers, product) else None
    if divisor is None:
        return False
    value, reading = divisor
    with ir.InsertionPoint(quotient), product.location:
        row = convert(reading.write(value, shape_of(powers)), element_of(powers))
        weights = convert(hlo.divide(powers, row), element_of(weighted.weights))
        new = copy_operation(product, {weighted.values: weighted.values, weighted.weights: weights})
    if attention_of(new) is None:
        given = (value, powers, weighted.values)
        erase_unused(in_order(backward_slice([new.results[0]], lambda each: each in given)))
        return False
    product.results[0].replace_all_uses_with(new.results[0])
    for each in reversed(turns):
        each.move_before(quotient)
    quotient.results[0].replace_all_uses_with(quotient.operands[0])
    quotient.erase()
    product.erase()
    return True


def _are_powers(value: ir.Value, product: ir.Operation) -> bool:
    """Whether a value is made of powers, which only the product and reductions read."""
    if not is_result_of(value, "stablehlo.exponential") and not is_result_of(value, "stablehlo.select"):
        return False
    pending = users_of(value)
    while pending:
        user = pending.pop()
        if user.name in _CONVERTED:
            pending += users_of(user.results[0])
        elif user != product and user.name != REDUCE:
            return False
    return True


def _divisor(quotient: ir.Operation, product: ir.Operation, weighted: Weighted) -> tuple[ir.Value, Reading] | None:
    """Return a number of each row that the result is divided by, and how it is read at the indices of the weights."""
    if weighted.column < 0 or len(weighted.contracted) != 1 or quotient.operands[0] == quotient.operands[1]:
        return None
    whole = identity_map(shape_of(quotient.results[0])).with_simple_results()
    result, to_result = behind((quotient.operands[0], whole), _TURNED)
    value, to_row = behind((quotient.operands[1], whole), SPREADS)
    used = {number for each in to_row.results for number in each.variables()[0]}
    made = defining_op(value)
    if result != product.results[0] or to_result.results[weighted.column].variables()[0] & used:
        return None
    if made is None or made.block != product.block:
        return None
    shape = shape_of(weighted.weights)
    at_result = weighted.result_indices([dim(number) for number in range(len(shape))], constant(0))
    indices = [constant(0)] * len(shape_of(quotient.results[0]))
    for each, index in zip(to_result.results, at_result, strict=True):
        for number in each.variables()[0]:
            indices[number] = index
    map_ = IndexingMap(ranges(shape), (), tuple(each.substitute(indices) for each in to_row.results))
    reading = reading_of(map_.with_simple_results(), shape, shape_of(value))
    return None if reading is None else (value, reading)
