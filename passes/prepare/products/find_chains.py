"""The pass `find-chains`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.attention.attention import Attention, attention_of, is_tiled, keeps_numbers
from xgpu.costs.attention import AttentionSizes, is_fast
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dialects.chain import ChainOp
from xgpu.emit.families.attention.facts import MOVED, attention_problem
from xgpu.emit.families.products.schedule import device_problem
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.structure import backward_slice, copy_operation, defining_op, is_constant, producer, users_of

_SPREADS = frozenset(("stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim"))
"""What may lie between an array and a product that copies tiles of it."""
_CHEAP = 4
"""Instructions of an operation that each block may compute for itself, instead of reading its result."""
_MOST_OPERATIONS = 64
"""Operations of a chain beside those that products and softmax are made of."""


@dataclass(frozen=True)
class FindChains(OperationRewrite):
    """Makes one operation, for one kernel, of two products of which one reads what is computed of the other.

    That is attention: a softmax of the rows of a product, and of what is made of them by masks, biases and functions of
    single elements, weights the rows of another one. It is left as it is where something else reads what lies between
    the products, such as a gradient, where warp groups cannot multiply it, and where it would be slower. What masks and
    biases are cheaply made of is taken into the chain.

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
    target: str = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    find: bool = True
    """Whether any are made: a CPU has no tensor cores for them."""

    def rewrite(self, op: ir.Operation) -> None:
        """Make a chain of the operations up to a product, if they are one."""
        target = device(self.target)
        if not self.find or device_problem(target) is not None:
            return
        attention = attention_of(op)
        if attention is None:
            return
        sizes = (attention.batch, attention.rows, attention.keys, attention.width, attention.columns)
        if not is_fast(AttentionSizes(*sizes), target):
            return
        chain = _Chain.of(attention)
        if chain is not None:
            chain.write()


@dataclass(frozen=True)
class _Chain:
    """The ``operations`` of a chain, in order, of which the last one makes ``result``, and what they read."""

    operations: tuple[ir.Operation, ...]
    inputs: tuple[ir.Value, ...]
    result: ir.Value

    @classmethod
    def of(cls, attention: Attention) -> "_Chain | None":
        """Return the chain of attention; None if there is no kernel for it, or something else reads what is inside."""
        result = attention.second.results[0]
        while (user := _only_user(result)) is not None and user.name in MOVED and keeps_numbers(user):
            result = user.results[0]
        for spreads in (_SPREADS, frozenset[str]()):
            operations, inputs = _inside(attention, result, spreads)
            arrays = {value: value for value in inputs}
            if attention_problem(attention, result, arrays) is None:
                break
        else:
            return None
        own = set(operations)
        scores = attention.first.results[0]
        is_inner = _depends(operations, scores)
        is_read = any(user not in own for op in is_inner if op != producer(result) for user in users_of(op.results[0]))
        return None if is_read else cls(tuple(operations), tuple(inputs), result)

    def write(self) -> None:
        """Replace the result by that of a chain."""
        last = producer(self.result)
        with ir.InsertionPoint(last), last.location:
            chain = ChainOp.create(self.inputs, [self.result.type]).operation
            block = chain.regions[0].blocks.append(*(value.type for value in self.inputs))
            values = dict(zip(self.inputs, block.arguments, strict=True))
            with ir.InsertionPoint(block):
                for op in self.operations:
                    copy_operation(op, values)
                ir.stablehlo.return_([values[self.result]])
        self.result.replace_all_uses_with(chain.results[0])
        for op in reversed(self.operations):
            if not any(users_of(value) for value in op.results):
                op.erase()


def _only_user(value: ir.Value) -> ir.Operation | None:
    users = users_of(value)
    return users[0] if len(users) == 1 else None


def _depends(operations: Iterable[ir.Operation], value: ir.Value) -> list[ir.Operation]:
    """Return those of some operations, which are in order, that need ``value``, and the one that makes it."""
    made = {value}
    found = []
    for op in operations:
        if op.results[0] in made or any(operand in made for operand in op.operands):
            made.update(op.results)
            found.append(op)
    return found


def _inside(
    attention: Attention, result: ir.Value, spreads: frozenset[str]
) -> tuple[list[ir.Operation], list[ir.Value]]:
    """Return the operations of a chain, in order, and the values that they read, in the order in which they do."""
    first, second = attention.first, attention.second
    order = {op.operation: number for number, op in enumerate(second.block.operations)}
    # The body of a loop may use values from around it.
    slice_ = backward_slice([result], lambda value: value == first.results[0] or defining_op(value) not in order)
    inner = set(_depends(sorted((*slice_, first), key=order.__getitem__), first.results[0]))
    moved = {attention.queries, attention.key_rows, attention.values}
    found: dict[ir.Operation, None] = {}
    inputs: dict[ir.Value, None] = {}
    pending = [(result, False)]
    while pending:
        value, is_moved = pending.pop()
        op = defining_op(value)
        is_taken = op in inner or (op in order and (op.name in spreads if is_moved else _is_cheap(op)))
        is_full = len(found) > _MOST_OPERATIONS + len(inner) and not is_constant(value)
        if op is None or not is_taken or is_full:
            inputs[value] = None
            continue
        found[op] = None
        operands = [(operand, is_moved or (op in (first, second) and operand in moved)) for operand in op.operands]
        pending += [each for each in reversed(operands) if each[0] not in inputs]
    return sorted(found, key=order.__getitem__), list(inputs)


def _is_cheap(op: ir.Operation) -> bool:
    """Whether a block may compute an operation's tiles for itself."""
    if not is_tiled(op):
        return False
    known = OPERATIONS.get(op.name)
    return known is None or known.instructions <= _CHEAP or not shape_of(op.results[0])
