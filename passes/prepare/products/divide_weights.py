"""The pass `divide-weights`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.attention.attention import attention_of
from xgpu.analysis.attention.places import (
    DOT,
    REDUCE,
    SPREADS,
    Place,
    behind,
    keeps_numbers,
    number_of,
    reducing_function,
)
from xgpu.analysis.attention.weighted import Weighted
from xgpu.costs.attention import is_fast
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName, device
from xgpu.emit.families.attention.facts import most_columns, sizes_of
from xgpu.emit.families.products.schedule import device_problem
from xgpu.hlo.stablehlo_builder import convert, hlo
from xgpu.hlo.tensor_cores import product_problem
from xgpu.indexing.access import identity_map, integers, ranges, shape_of
from xgpu.indexing.affine import constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.passes.prepare.chains.lifting import Reading, reading_of
from xgpu.passes.prepare.chains.masked_powers import MaskedPowers
from xgpu.passes.support.index_ops import erase_unused
from xgpu.records import dataclass
from xgpu.structure import (
    backward_slice,
    copy_operation,
    defining_op,
    element_of,
    in_order,
    is_result_of,
    producer,
    users_of,
)

_DIVIDED = frozenset(("stablehlo.divide",))
_SUBTRACT, _EXPONENTIAL = "stablehlo.subtract", "stablehlo.exponential"
_CONVERTED = frozenset(("stablehlo.convert",))
_TURNED = frozenset(("stablehlo.convert", "stablehlo.transpose"))


@dataclass(frozen=True)
class DivideWeights(BlockRewrite):
    """Writes the weights of attention as powers that are divided by their sum, which is how it is known.

    Programs divide the product's result instead, which is smaller, or take powers of logits without the logarithm of
    the sum, which they have as a result; and they choose powers by a mask that has chosen logits, or multiply by it,
    where -inf as hidden logits does both. The kernel divides its result in any case. All is left as it is where the
    product would not be attention, or where anything else reads powers that are divided later than the product and
    sums: a gradient does. Needs: run it before find-chains.

    ```mlir
    %sums = stablehlo.dot_general %powers, %v, ...
    %0 = stablehlo.divide %sums, %total : tensor<8x16xf32>
    // becomes
    %weights = stablehlo.divide %powers, %total : tensor<8x32xf32>
    %0 = stablehlo.dot_general %weights, %v, ...

    %powers = stablehlo.exponential %logits : tensor<8x32xf32>
    %1 = stablehlo.subtract %logits, %logarithm : tensor<8x32xf32>
    %weights = stablehlo.exponential %1 : tensor<8x32xf32>
    // becomes
    %powers = stablehlo.exponential %logits : tensor<8x32xf32>
    %weights = stablehlo.divide %powers, %total : tensor<8x32xf32>
    ```
    """

    NAME: ClassVar[str] = "divide-weights"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((DOT,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    find: bool = True
    """Whether kernels of attention are made: otherwise there is less to divide after the product."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Divide the powers of the products of a block."""
        target = device(self.target)
        if not self.find or device_problem(target) is not None:
            return
        for op in operations_of(block, _DIVIDED):
            moves = _moves_behind(op)
            if moves and moves[-1].name == DOT:
                any(_divide_weights(op, moves, Weighted(moves[-1], weight), target) for weight in range(2))
        for op in operations_of(block, self.OPERATIONS):
            any(
                _divide_powers(each, target) or _hide_logits(each, target)
                for each in (Weighted(op, 0), Weighted(op, 1))
            )


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


def _divide_weights(quotient: ir.Operation, moves: Sequence[ir.Operation], weighted: Weighted, target: Device) -> bool:
    """Divide the weights of the product, and nothing after it, if it is attention then; return whether."""
    *turns, product = moves
    powers, _ = behind((weighted.weights, identity_map(shape_of(weighted.weights))), _CONVERTED)
    divisor = _divisor(quotient, product, weighted) if _are_powers(powers, product) else None
    if divisor is None:
        return False
    value, reading = divisor

    def spread(row: ir.Value) -> ir.Value:
        return convert(reading.write(row, shape_of(powers)), element_of(powers))

    masked = MaskedPowers.of(powers)
    with ir.InsertionPoint(quotient), product.location:
        divided = hlo.divide(powers, spread(value)) if masked is None else masked.weights(value, spread)
        if divided is None:
            return False
        weights = convert(divided, element_of(weighted.weights))
        new = copy_operation(product, {weighted.values: weighted.values, weighted.weights: weights})
    if not _is_attention(new, target):
        _erase_unread(new.results[0])
        return False
    product.results[0].replace_all_uses_with(new.results[0])
    for each in reversed(turns):
        each.move_before(quotient)
    quotient.results[0].replace_all_uses_with(quotient.operands[0])
    spread_before = quotient.operands[1]
    quotient.erase()
    _erase_unread(spread_before, product.results[0])
    return True


def _are_powers(value: ir.Value, product: ir.Operation) -> bool:
    """Whether a value is made of powers, which only the product and reductions read."""
    if not is_result_of(value, _EXPONENTIAL) and MaskedPowers.of(value) is None:
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


def _divide_powers(weighted: Weighted, target: Device) -> bool:
    """Divide powers by their sum, if weights are those without its logarithm; return whether."""
    weights, _ = behind((weighted.weights, identity_map(shape_of(weighted.weights))), _CONVERTED)
    whole = identity_map(shape_of(weights)).with_simple_results()
    difference = _operand_of(weights, _EXPONENTIAL)
    below = None if difference is None else defining_op(difference)
    if below is None or below.name != _SUBTRACT:
        return False
    found = _powers_and_sum(below.operands[0], behind((below.operands[1], whole), SPREADS))
    if found is None:
        return False
    powers, (total, map_) = found
    reading = reading_of(map_, shape_of(powers), shape_of(total))
    if reading is None:
        return False
    with ir.InsertionPoint(producer(weights)), producer(weights).location:
        quotients = hlo.divide(powers, convert(reading.write(total, shape_of(powers)), element_of(powers)))
    weights.replace_all_uses_with(quotients)
    return _is_kept(weighted, weights, quotients, target)


def _hide_logits(weighted: Weighted, target: Device) -> bool:
    """Hide logits by -inf instead of powers by zeros, if the product is attention then; return whether."""
    weights, _ = behind((weighted.weights, identity_map(shape_of(weighted.weights))), _CONVERTED)
    op = defining_op(weights)
    masked = MaskedPowers.of(op.operands[0]) if op is not None and op.name in _DIVIDED else None
    if masked is None or op is None:
        return False
    with ir.InsertionPoint(op), op.location:
        made = masked.weights(op.operands[1], lambda divisor: divisor)
    return made is not None and _is_kept(weighted, weights, made, target)


def _is_kept(weighted: Weighted, old: ir.Value, new: ir.Value, target: Device) -> bool:
    """Use ``new`` values instead of ``old`` ones if the product is attention then; return whether."""
    old.replace_all_uses_with(new)
    is_kept = _is_attention(weighted.product, target)
    if not is_kept:
        new.replace_all_uses_with(old)
    _erase_unread(old if is_kept else new)
    return is_kept


def _is_attention(product: ir.Operation, target: Device) -> bool:
    """Whether a product is the second one of attention that a kernel is expected to be faster for."""
    attention = attention_of(product)
    if attention is None or attention.columns > most_columns(attention):
        return False
    is_multiplied = all(product_problem(each) is None for each in (attention.first, attention.second))
    return is_multiplied and is_fast(sizes_of(attention), target)


def _erase_unread(*values: ir.Value) -> None:
    """Erase what values are computed by, up to other products, as far as nothing else reads it."""
    made = backward_slice(values, lambda each: each not in values and is_result_of(each, DOT))
    erase_unused(in_order(made))


def _powers_and_sum(logits: ir.Value, row: Place) -> tuple[ir.Value, Place] | None:
    """Return the powers, and their sum, whose logarithm a ``row`` is, plus what powers are of logits without.

    None if it is anything else.
    """
    summands = [row]
    if (added := defining_op(row[0])) is not None and added.name == "stablehlo.add":
        summands = [behind((each, row[1]), SPREADS) for each in added.operands]
    for number, (value, map_) in enumerate(summands):
        logarithm = _operand_of(value, "stablehlo.log")
        if logarithm is None:
            continue
        total, at = behind((_operand_of(logarithm, "stablehlo.abs") or logarithm, map_), SPREADS)
        powers = _summed(total, at)
        exponent = None if powers is None else _operand_of(powers, _EXPONENTIAL)
        others = [each for other, each in enumerate(summands) if other != number]
        if powers is not None and exponent is not None and _is_without(exponent, logits, others):
            return powers, (total, at)
    return None


def _summed(total: ir.Value, map_: IndexingMap) -> ir.Value | None:
    """Return the array of which a value at the indices of a map has the sums along one dimension, None if it is none.

    Each element of the array is added to the sum that the map leads to from its indices.
    """
    op = defining_op(total)
    if op is None or op.name != REDUCE or len(op.results) != 1 or reducing_function(op) != "add":
        return None
    dimensions = integers(op, "dimensions")
    rows = [dim(number) for number in range(len(map_.dims)) if number not in dimensions]
    is_whole = len(dimensions) == 1 and [each.size for each in map_.dims] == list(shape_of(op.operands[0]))
    is_zero = number_of(op.operands[1]) == 0
    own = [each for each, size in zip(map_.results, shape_of(total), strict=True) if size > 1]
    wanted = [each for each, size in zip(rows, shape_of(total), strict=False) if size > 1]
    return op.operands[0] if is_whole and is_zero and own == wanted else None


def _is_without(exponent: ir.Value, logits: ir.Value, row: Sequence[Place]) -> bool:
    """Whether a value is ``logits``, without what a row has, if it is given."""
    if not row:
        return exponent == logits
    op, (place,) = defining_op(exponent), row
    whole = identity_map(shape_of(logits)).with_simple_results()
    is_difference = op is not None and op.name == _SUBTRACT and op.operands[0] == logits
    return is_difference and op is not None and behind((op.operands[1], whole), SPREADS) == place


def _operand_of(value: ir.Value, name: str) -> ir.Value | None:
    """Return the operand of the operation of a name that makes a value, None if another does."""
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == name else None
