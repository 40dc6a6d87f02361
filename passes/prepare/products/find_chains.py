"""The pass `find-chains`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from xgpu import ir
from xgpu.analysis.attention.attention import Attention, attention_of
from xgpu.analysis.attention.chained_sums import MOVED
from xgpu.analysis.attention.gradient import Gradient, gradient_of
from xgpu.analysis.attention.lone_gradient import lone_gradient_of
from xgpu.analysis.attention.places import REDUCE
from xgpu.analysis.attention.sum_groups import SumGroups
from xgpu.costs.attention import copying_seconds, is_fast, is_gradient_fast, widening_seconds
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName, device
from xgpu.emit.families.attention.facts import attention_problem, most_columns, sizes_of
from xgpu.emit.families.attention.sources import LOOKUPS
from xgpu.emit.families.attention.tiles import FULL
from xgpu.emit.families.attention.writing import MOVES
from xgpu.emit.families.products.schedule import device_problem
from xgpu.fusion.computed_matrices import is_in_an_array, matrix_for_sums, widened_bytes
from xgpu.fusion.fallback import PRODUCT
from xgpu.fusion.product_operands import behind_transposes
from xgpu.hlo.stablehlo_builder import convert, reshape
from xgpu.hlo.tensor_cores import ALGORITHM
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.passes.framework.remarks import remark
from xgpu.passes.prepare.chains.arranging import Arrangement
from xgpu.passes.prepare.chains.caps import caps
from xgpu.passes.prepare.chains.gradients import GradientChains, first_user, in_block
from xgpu.passes.prepare.chains.parts import (
    ChainParts,
    Taken,
    depending,
    last_moved,
    moved_stages,
    with_operands_before,
)
from xgpu.passes.prepare.chains.results import write_result
from xgpu.passes.prepare.chains.row_sums import with_one_sum
from xgpu.passes.prepare.chains.softmax import with_quotients
from xgpu.passes.prepare.chains.sums import write_sums
from xgpu.passes.prepare.chains.weights import in_column_parts
from xgpu.records import dataclass
from xgpu.structure import (
    attributes_of,
    backward_slice,
    copy_operation,
    defining_op,
    dtype_of,
    in_order,
    is_argument,
    producer,
    users_of,
)

_SUMS = frozenset((REDUCE,))
_SLICE = "stablehlo.slice"
_RESHAPES = frozenset(("stablehlo.reshape",))
_MOST_LOGITS = 64
"""Values that logits are computed from which are looked at."""


@dataclass(frozen=True)
class FindChains(BlockRewrite):
    """Makes one operation, for one kernel, of two products where one reads values computed from the other.

    That is attention: a softmax of the rows of a product, and of what is made of them by masks, biases and functions of
    single elements, weights the rows of another one. What masks and biases are cheaply made of is taken into the chain;
    where that takes many operations, as random bits do, it reads the narrowest value on the way. After the softmax
    weights may have factors, such as a dropout's, which are in memory or made of indices. With a sink, rows have other
    divisors.

    Keys and values that are gathered, as from a cache in pages or of one layer of several, are so in the chain, if
    tiles consist of rows that lie together. A gradient reads them again, from memory.

    Where a gradient reads what lies between the products, attention stores of each row its largest logit and the sum of
    its weights, too, and the gradient's products become chains that compute the weights again: one of those with a
    result for each row, one of those with results for each key. Sums of gradients times weights are then made of
    attention's result, before them. What else is computed from the logits' gradient, as the gradient of a bias is,
    reads it as a result of one of these chains. Where a program has no more than the gradient, as `jax.checkpoint`
    leaves it, attention is computed for that.

    Products whose results nothing but further products read, and these element by element, are chains as well: weights
    are a sigmoid of logits, or decay with the distance, and nothing is added up over a row. Each product that reads
    them computes them again.

    All is left as it is where something else reads what lies between, where warp groups cannot multiply it, and where
    it would be slower: also for few rows by keys and values that are computed of smaller arrays, as of a cache of 8
    bits, which a kernel of attention would have to find in memory.

    ```mlir
    %scores = stablehlo.dot_general %q, %k, ...
    ...
    %sums = stablehlo.dot_general %weights, %v, ...
    // becomes
    %sums = "xgpu.chain"(%q, %k, %v) ({
      ...
    })
    ```
    """

    NAME: ClassVar[str] = "find-chains"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.dot_general",))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    find: bool = True
    """Whether any are made: a CPU has no tensor cores for them."""
    gradients: bool = False
    """Whether they are made of attention with its gradient, too."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Make chains of the operations of a block up to those products that are the last of one."""
        target = device(self.target)
        if not self.find or device_problem(target) is not None:
            return
        _rewrite_each(operations_of(block, self.OPERATIONS), lambda op: self._chained(op, target))
        _rewrite_each(operations_of(block, _SUMS), lambda op: self._chained_alone(op, target))
        if products := operations_of(block, self.OPERATIONS):
            groups = SumGroups(block)
            _rewrite_each(products, lambda op: self._chained_sums(op, target, groups))

    def _chained_sums(self, op: ir.Operation, target: Device, groups: SumGroups) -> list[ir.Operation]:
        """Make chains of the products that read what is made of the product ``op``, if nothing else does."""
        group = groups.of(op)
        if group is None or (len(group.ends) > 1 and not self.gradients):
            return []
        replaced = write_sums(group, target)
        if isinstance(replaced, str):
            remark(self.NAME, op, f"products are left apart: {replaced}")
            groups.refuse(group)
            return []
        for old, new in replaced.items():
            old.replace_all_uses_with(new)
        dead = _dead([producer(old) for old in replaced])
        groups.forget(dead)
        return dead

    def _chained_alone(self, op: ir.Operation, target: Device) -> list[ir.Operation]:
        """Make chains of a gradient of attention in which ``op`` is the sum of each row, with attention itself."""
        gradient = lone_gradient_of(op) if self.gradients else None
        written = None if gradient is None else write_result(gradient)
        if written is None:
            return []
        with ir.InsertionPoint(written), written.location:
            dead = self._chained(written, target, has_result=False)
        return dead or _unread(written)

    def _chained(
        self,
        op: ir.Operation,
        target: Device,
        has_result: bool = True,
        parts: int = 1,
        unread: Sequence[ir.Operation] = (),
    ) -> list[ir.Operation]:
        """Make chains of attention whose second product ``op`` is, if it is one; return what nothing needs any more.

        The program ``has_result`` if the product is one of its own; of so many ``parts`` are its columns otherwise, in
        an operation that is ``unread`` then.
        """
        attention = attention_of(op)
        if attention is None:
            return []
        with_one_sum(attention)
        if (count := -(-attention.columns // most_columns(attention))) > 1:
            return self._chained_in_parts(attention, count, target)
        if _is_mixed(attention):
            return self._chained_of_full(attention, target)
        gradient = gradient_of(attention)
        if isinstance(gradient, str):
            return self._left(op, gradient)
        if gradient.ends and not self.gradients:
            return self._left(op, "gradients read what lies between its products, and are not to be kernels")
        arranged = Arrangement.of(gradient)
        if not _is_faster(gradient, arranged, target, has_result, parts):
            return self._left(op, "products of a library are expected to take less time")
        tried = _moves(gradient, target)
        if not tried:
            return self._left(op, "sums read what keys and values are computed of once")
        replaced = _replaced(gradient, arranged, tried)
        if isinstance(replaced, str):
            return self._left(op, replaced)
        for old, new in replaced.items():
            old.replace_all_uses_with(new)
        return _dead([*(producer(old) for old in replaced), *unread])

    def _left(self, op: ir.Operation, reason: str) -> list[ir.Operation]:
        """Say why attention whose second product ``op`` is becomes no chain: nothing is erased."""
        remark(self.NAME, op, f"attention is left in parts: {reason}")
        return []

    def _chained_of_full(self, attention: Attention, target: Device) -> list[ir.Operation]:
        """Make a chain of attention whose weights are multiplied as f32: so are queries and keys, which are exact."""
        first = attention.first.results[0]
        with ir.InsertionPoint(attention.first), attention.first.location:
            operands = [convert(each, FULL) for each in attention.first.operands]
            kept = {name: each for name, each in attributes_of(attention.first).items() if name != ALGORITHM}
            wide = ir.Operation.create(attention.first.name, [first.type], operands, kept)
        first.replace_all_uses_with(wide.results[0])
        if dead := self._chained(attention.second, target, unread=[attention.first]):
            return dead
        wide.results[0].replace_all_uses_with(first)
        return _dead([wide])

    def _chained_in_parts(self, attention: Attention, count: int, target: Device) -> list[ir.Operation]:
        """Make a chain whose columns are in so many parts, for each of which the weights are computed again."""
        if attention.columns % count:
            return self._left(attention.second, f"{attention.columns} columns are not {count} parts of one length")
        whole, (product, result) = attention.second.results[0], in_column_parts(attention, count)
        whole.replace_all_uses_with(result)
        if dead := self._chained(product, target, parts=count, unread=[attention.second]):
            return dead
        result.replace_all_uses_with(whole)
        return _dead([producer(result)])


def _is_mixed(attention: Attention) -> bool:
    """Whether queries and keys have 16 bits, and weights and values f32."""
    narrow, wide = ({dtype_of(each).hlo for each in op.operands} for op in (attention.first, attention.second))
    return wide == {FULL} and narrow in ({"bf16"}, {"f16"})


def _rewrite_each(operations: Sequence[ir.Operation], chained: Callable[[ir.Operation], list[ir.Operation]]) -> None:
    """Let ``chained`` make chains of each operation, and erase what it returns: what nothing needs any more."""
    numbers = {op.results[0]: number for number, op in enumerate(operations)}
    erased: set[int] = set()
    for number, op in enumerate(operations):
        if number in erased:
            continue
        with ir.InsertionPoint(op), op.location:
            dead = chained(op)
        for each in reversed(dead):
            erased.update(numbers[result] for result in each.results if result in numbers)
            each.erase()


def _is_faster(gradient: Gradient, arranged: Arrangement, target: Device, has_result: bool, parts: int) -> bool:
    """Whether chains, with copies of their operands, take less time than products of a library, of no column parts."""
    sizes = sizes_of(gradient.attention)
    copying = copying_seconds(arranged.elements, sizes.element_bytes, target)
    if gradient.ends:
        stored = sum(math.prod(shape_of(value)) * dtype_of(value).bits // 8 for value in gradient.elements)
        return is_gradient_fast(sizes, target, copying + stored / target.memory_bandwidth, has_result)
    # The kernel would read the other product as a bias: measured to be up to 2.6 times as slow as libraries.
    more = math.inf if parts > 1 and _adds_products(gradient.attention, parts) else copying
    more += sum(widening_seconds(*each, target) for each in _widened(gradient.attention, arranged))
    return is_fast(sizes, target, more, sizes._replace(batch=sizes.batch // parts, columns=sizes.columns * parts))


def _widened(attention: Attention, arranged: Arrangement) -> Iterator[tuple[int, int, int]]:
    """Yield the elements of each operand that a library widens as it multiplies, and their bytes before and after.

    But for those that are ``arranged``: they count as copied.
    """
    operands = [*attention.first.operands, attention.second.operands[1 - attention.weight]]
    for operand in operands:
        is_counted = behind_transposes(operand) in arranged.widened
        if not is_counted and (narrow := widened_bytes(operand)) is not None:
            yield math.prod(shape_of(operand)), narrow, dtype_of(operand).storage_bits // 8


def _adds_products(attention: Attention, parts: int) -> bool:
    """Whether logits, of which there are ``parts`` times as many, are a sum of products, if that is soon found."""
    elements = math.prod(attention.shape) // parts
    pending, seen = [attention.softmax.logits], {attention.softmax.logits}
    while pending and len(seen) <= _MOST_LOGITS:
        op = defining_op(pending.pop())
        if op is None or op == attention.first or math.prod(shape_of(op.results[0])) < elements:
            continue
        if op.name == PRODUCT:
            return True
        operands = set(op.operands) - seen
        seen |= operands
        pending += operands
    return False


class _Moved(NamedTuple):
    """The operations by which operands of a chain are moved in it, and whether it ``gathers`` keys and values."""

    by: frozenset[str]
    gathers: bool = False


def _moves(gradient: Gradient, target: Device) -> list[_Moved]:
    """Return the ways to move operands in a chain, of which the first is taken for which there is a kernel.

    None if sums read what keys and values are computed of, once; but for a chain that gathers them.
    """
    plain = [_Moved(MOVES | {_SLICE}), _Moved(MOVES), _Moved(frozenset[str]())]
    if gradient.ends:
        # A gradient reads them again, from memory.
        return plain
    attention = gradient.attention
    gathered = [_Moved(MOVES | {_SLICE}, gathers=True)]
    if not _is_of_computed_matrices(attention, target):
        return gathered + plain
    return gathered if all(map(_is_gathered, (attention.key_rows, attention.values))) else []


def _is_gathered(value: ir.Value) -> bool:
    """Whether a value is moved from what is gathered of an array in memory, such as a cache that was just written."""
    looked_up = False
    while (op := defining_op(value)) is not None and op.name in (*MOVES, _SLICE, *LOOKUPS):
        looked_up |= op.name in LOOKUPS
        value = op.operands[0]
    return looked_up and is_in_an_array(value)


def _replaced(gradient: Gradient, arranged: Arrangement, tried: Sequence[_Moved]) -> Mapping[ir.Value, ir.Value] | str:
    """Write the chains of a gradient, and what they read; return the replacements of values.

    All is left as it was if there is no kernel for one of them: why is returned.
    """
    # Operands have other values, but the same elements at the same indices: what is known of them stays true.
    arranged.write()
    block = gradient.attention.second.block
    before = _operations(block) if gradient.ends else []
    rewritten = with_quotients(gradient.attention) if gradient.ends else {}
    elements = tuple(rewritten.get(value, value) for value in gradient.elements)
    replaced = _write(replace(gradient, elements=elements), arranged, tried)
    if not isinstance(replaced, str):
        return {**replaced, **rewritten}
    # Attention that is refused has not been written; what its gradient is made of may have been.
    for old, new in rewritten.items():
        new.replace_all_uses_with(old)
    # Operations are hashed only here, as a program of many layers has many, and few gradients are refused.
    kept = set(before)
    for each in reversed(_operations(block) if gradient.ends else []):
        if each not in kept:
            each.erase()
    arranged.undo()
    return replaced


def _write(gradient: Gradient, arranged: Arrangement, tried: Sequence[_Moved]) -> Mapping[ir.Value, ir.Value] | str:
    """Write the chains of attention, and of its gradient if there is one; return the replacements of values."""
    attention = gradient.attention
    # Sums of a gradient know the result in another shape, not in another order of its elements.
    stage = gradient.stage
    last = last_moved(stage, attention.element_bytes, _RESHAPES if gradient.sums else MOVED)
    rows = list(attention.row_values) if gradient.ends or gradient.rows else []
    problems = []
    for result in (results := moved_stages(last)):
        chain = _write_attention(attention, [result, *rows], arranged, tried)
        if not isinstance(chain, str):
            break
        problems.append(chain)
    else:
        return problems[0]
    if not gradient.ends:
        made = _write_rows(gradient, chain)
        return made if isinstance(made, str) else {result: chain.results[0], **made}
    end = first_user(gradient)
    if end is None:
        return "expected results of a gradient that are read"
    if not all(_is_known_before(each.given, end) for each in gradient.sums):
        return "expected the gradient of attention's result before what reads values of its rows"
    is_moved_later = results.index(result) > results.index(stage)
    if is_moved_later and not producer(stage).is_before_in_block(end):
        return "expected attention's result before what reads its gradient"
    stored = dict(zip(rows, list(chain.results)[1:], strict=True))
    with ir.InsertionPoint(end), end.location:
        moved = stage if is_moved_later else reshape(chain.results[0], shape_of(stage))
        made = GradientChains(gradient, end, stored, moved, arranged).write()
    return made if isinstance(made, str) else {result: chain.results[0], **made}


def _write_rows(gradient: Gradient, chain: ir.Operation) -> Mapping[ir.Value, ir.Value] | str:
    """Write values of rows that a program reads beside attention's result, of what its chain returns of each row.

    What reads them comes after the chain then.
    """
    block = chain.block
    readers = in_order(found for op in gradient.readers if (found := in_block(op, block)) is not None)
    if readers and not chain.is_before_in_block(readers[0]):
        chain.move_before(readers[0])
        if not with_operands_before(chain, chain.results):
            chain.erase()
            return "expected what attention is of before what reads values of its rows"
    copies: dict[ir.Value, ir.Value] = dict(zip(gradient.attention.row_values, list(chain.results)[1:], strict=False))
    stored = list(copies)
    with ir.InsertionPoint.after(chain), chain.location:
        for op in depending(in_order(backward_slice(gradient.rows, stored.__contains__)), stored):
            if op.results[0] not in copies:
                copies = {**{operand: operand for operand in op.operands}, **copies}
                copy_operation(op, copies)
    return {value: copies[value] for value in gradient.rows}


def _write_attention(
    attention: Attention, results: Sequence[ir.Value], arranged: Arrangement, tried: Sequence[_Moved]
) -> ir.Operation | str:
    """Write the chain of attention, whose operands are moved by some operations; return it, or why it has no kernel."""
    result = results[0]
    slice_ = backward_slice(results, lambda value: not _is_after(value, attention.first))
    inner = frozenset(depending(in_order((*slice_, attention.first)), [attention.first.results[0]]))
    moved = {
        attention.first: [attention.queries, attention.key_rows],
        attention.second: [attention.values],
    }
    inner |= arranged.slices
    problems = []
    for moves in tried:
        gathered = (attention.key_rows, attention.values) if moves.gathers else ()
        taken = Taken(inner, moved, moves.by, arranged.copies.__contains__, gathered)
        parts = ChainParts.of(results, taken)
        if (problem := attention_problem(attention, result, {value: value for value in parts.inputs})) is not None:
            problems.append(problem)
        else:
            with ir.InsertionPoint(producer(result)), producer(result).location:
                return parts.write(results, {}, caps(parts.operations, attention.softmax.logits))
    return problems[0]


def _is_of_computed_matrices(attention: Attention, target: Device) -> bool:
    """Whether both products are better sums, for few rows, whose kernels compute keys and values as they read them."""
    return all(matrix_for_sums(op, target) is not None for op in (attention.first, attention.second))


def _is_known_before(value: ir.Value, end: ir.Operation) -> bool:
    """Whether a value is one from before an operation."""
    op = defining_op(value)
    return op is None or op.block != end.block or op.is_before_in_block(end)


def _is_after(value: ir.Value, first: ir.Operation) -> bool:
    """Whether a value is made after an operation of the same block; that of a loop may use values from around it."""
    op = defining_op(value)
    return op is not None and op.block == first.block and first.is_before_in_block(op)


def _unread(op: ir.Operation) -> list[ir.Operation]:
    """Return an operation and those that move its result, which nothing reads, and those that were made for it."""
    last = op
    while users := users_of(last.results[0]):
        (last,) = users
    return _dead([last])


def _operations(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations]


def _dead(ends: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Return the operations that only some that nothing reads were made of, these among them, in order."""
    block, found, pending = ends[0].block, set[ir.Operation](), list(ends)
    while pending:
        op = pending.pop()
        is_read = any(user not in found for value in op.results for user in users_of(value))
        if op in found or op.block != block or is_read:
            continue
        found.add(op)
        pending += [producer(value) for value in op.operands if not is_argument(value)]
    return in_order(found)
