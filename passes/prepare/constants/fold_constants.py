"""The pass `fold-constants`."""

import math
from collections.abc import Iterable, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.arrays import Array, attribute_of, dtype_of_array
from xgpu.analysis.constants.equal_elements import EqualElements
from xgpu.analysis.constants.evaluator import Evaluator, is_known
from xgpu.hlo.scan_op import SCAN
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import BlockRewrite
from xgpu.records import dataclass
from xgpu.structure import behind, captured, is_argument, is_constant, is_used, producer

_CONSTANT, _SELECT = "stablehlo.constant", "stablehlo.select"
_LAUNCHED = frozenset(
    (*(f"stablehlo.{name}" for name in ("sort", "scatter", "gather", "reduce", "dynamic_update_slice")), SCAN)
)
"""Operations that take a launch, or need what they read in memory."""
_FOLDED = _LAUNCHED | {"stablehlo.dynamic_slice", "stablehlo.case", "stablehlo.if"}
"""Those, and operations whose indices are folded."""
_MOST_INDICES = 16
"""Elements of indices, those of one window, that are folded although kernels could compute them where they read."""


@dataclass(frozen=True)
class FoldConstants(BlockRewrite):
    """Replaces what is computed of constants alone by a constant, if that takes launches, or says where others read.

    ``jnp.insert`` with given places sorts, counts and scatters them: none of that depends on the arguments. Arrays that
    kernels compute where they read them, such as masks of ``stablehlo.iota``, stay: they need no memory. The indices of
    a single window of a gather, scatter or slice are folded too: who knows them writes it in a simpler form. What is
    selected by a condition that is known, and the same for all elements, is taken: what computes the other, such as a
    loop that draws numbers in another way, has no reader then.

    All that is folded is the same to the last bit on any machine: integers, comparisons, moves, and arithmetic of
    floats by IEEE 754, but no sums of them and no functions. Needs: constants in the blocks that use them.

    ```mlir
    %0 = stablehlo.constant dense<[3, 1, 2]> : tensor<3xi32>
    %1 = "stablehlo.sort"(%0) ({ ... stablehlo.compare LT ... }) : (tensor<3xi32>) -> tensor<3xi32>
    ```
    becomes
    ```mlir
    %1 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
    ```
    """

    NAME: ClassVar[str] = "fold-constants"
    OPERATIONS: ClassVar[frozenset[str]] = _FOLDED | {_SELECT}

    def rewrite_block(self, block: ir.Block) -> None:
        """Fold what the operations of ``block`` read."""
        _take_selected(block)
        operations = [view.operation for view in block.operations]
        if _FOLDED.isdisjoint(op.name for op in operations):
            return
        known = _known(operations)
        launched: dict[ir.Value, frozenset[ir.Value]] = {}
        for op in operations:
            if op in known:
                launched.update((result, _launched(op, result, launched)) for result in op.results)
        wanted = dict.fromkeys(value for op in operations if op not in known for value in _wanted(op, known, launched))
        unused = [op for op in operations if op in known]
        evaluator = Evaluator(known)
        # Operations are looked up by their operands, so that none is changed before the last is evaluated.
        for value, array in [(value, evaluator.array(value)) for value in wanted if not _is_written(value)]:
            if array is not None:
                _replace(value, array)
        _erase_unused(unused)


def _take_selected(block: ir.Block) -> None:
    """Replace selections of ``block`` by what they select, where one number says that."""
    selections = [op for view in block.operations if (op := view.operation).name == _SELECT]
    equal = EqualElements()
    for op, condition in [(op, equal.number(op.operands[0])) for op in selections]:
        if condition is not None:
            op.results[0].replace_all_uses_with(op.operands[1 if condition else 2])
            op.erase()


def _known(operations: Iterable[ir.Operation]) -> set[ir.Operation]:
    """Return the operations that are computed of constants alone."""
    known: set[ir.Operation] = set()
    for op in operations:
        if all(not is_argument(value) and producer(value) in known for value in op.operands) and is_known(op):
            known.add(op)
    return known


def _launched(op: ir.Operation, result: ir.Value, launched: dict[ir.Value, frozenset[ir.Value]]) -> frozenset[ir.Value]:
    """Return the constants to make of what ``result`` is computed of: all that takes a launch, and no more memory."""
    if op.name in _LAUNCHED:
        return frozenset((result,))
    found = frozenset[ir.Value]().union(*(launched[operand] for operand in op.operands))
    return frozenset((result,)) if found and _bytes(result) <= sum(map(_bytes, found)) else found


def _wanted(
    op: ir.Operation, known: set[ir.Operation], launched: dict[ir.Value, frozenset[ir.Value]]
) -> list[ir.Value]:
    """Return the values to fold that an operation reads, which depends on more than constants."""
    read = [value for value in (*op.operands, *captured(op)) if not is_argument(value) and producer(value) in known]
    found = [folded for value in read for folded in launched[value]]
    return found + [value for value in read if value in _indices(op) and _elements(value) <= _MOST_INDICES]


def _indices(op: ir.Operation) -> list[ir.Value]:
    """Return the operands that say where ``op`` reads or writes, or which branch it takes."""
    first = {
        "stablehlo.gather": 1,
        "stablehlo.dynamic_slice": 1,
        "stablehlo.dynamic_update_slice": 2,
        "stablehlo.case": 0,
        "stablehlo.if": 0,
    }
    if op.name == "stablehlo.scatter":
        return [op.operands[len(op.results)]]
    return list(op.operands)[first[op.name] :] if op.name in first else []


def _is_written(value: ir.Value) -> bool:
    """Whether ``value`` is a constant already, or a view of one."""
    return is_constant(behind(value, "stablehlo.broadcast_in_dim", "stablehlo.reshape"))


def _replace(value: ir.Value, array: Array) -> None:
    """Replace ``value`` by a constant."""
    op = producer(value)
    attributes = {"value": attribute_of(array, value.type)}
    with ir.InsertionPoint(op), op.location:
        constant = ir.Operation.create(_CONSTANT, results=[value.type], attributes=attributes).results[0]
    value.replace_all_uses_with(constant)


def _erase_unused(operations: Sequence[ir.Operation]) -> None:
    """Erase those of ``operations``, which are in their order, whose results nothing uses any more."""
    for op in reversed(operations):
        if not is_used(*op.results):
            op.erase()


def _elements(value: ir.Value) -> int:
    return math.prod(shape_of(value))


def _bytes(value: ir.Value) -> int:
    return _elements(value) * max(1, dtype_of_array(value.type).storage_bits // 8)
