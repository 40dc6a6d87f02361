"""The pass `lower-shuffles`."""

from collections.abc import Sequence
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.messages import PIECE_BITS
from xgpu.dialects.threads import ShuffleOp, ShuffleReduceOp
from xgpu.passes.framework.base import Pass, function_name, functions
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.messages import from_pieces, pieces_of
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.regions import move_body
from xgpu.passes.support.scf_ops import create_integer
from xgpu.records import dataclass
from xgpu.structure import body_of, count_ops, is_used, replace_op, walk
from xgpu.target_machine import WARP_SIZE


@dataclass(frozen=True)
class LowerShuffles(Pass):
    """Lowers `xgpu.shuffle_reduce` and `xgpu.shuffle` to 32-bit `gpu.shuffle` and the bodies of combiners.

    A value of less than 32 bits is shuffled as the low bits of an i32, a wider one in pieces. A combiner that is too
    large to be copied is called. What no one uses is not shuffled, and combiners that nothing refers to any more go
    away.
    Needs: expand-complex, so that values are integers and floats, and inline, so that combiners call nothing.

    ```mlir
    %r = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 16 : i64} : (f32) -> f32
    ```
    becomes
    ```mlir
    %bits = arith.bitcast %x : f32 to i32
    %other, %valid = gpu.shuffle xor %bits, %c16, %c32 : i32
    %y = arith.bitcast %other : i32 to f32
    %r = arith.addf %x, %y : f32
    ```
    """

    NAME: ClassVar[str] = "lower-shuffles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((ShuffleOp.OPERATION_NAME, ShuffleReduceOp.OPERATION_NAME))
    max_ops: int = 64
    """Operations of a combiner up to which its body is copied to each shuffle."""

    def apply(self, module: ir.Module) -> None:
        """Lower every shuffle of ``module``."""
        found = walk(module.operation, ShuffleOp.OPERATION_NAME, ShuffleReduceOp.OPERATION_NAME)
        shuffles = [op for op in found if op.name == ShuffleReduceOp.OPERATION_NAME]
        for op in reversed([op for op in found if op.name == ShuffleOp.OPERATION_NAME]):
            with ir.InsertionPoint(op), op.location:
                self._lower_plain(cast(ShuffleOp, op.opview))
        if not shuffles:
            return
        combiners = {function_name(function): function.operation for function in functions(module)}
        for op in reversed(shuffles):
            if any(len(list(result.uses)) for result in op.results):
                with ir.InsertionPoint(op), op.location:
                    self._lower(cast(ShuffleReduceOp, op.opview), combiners)
            else:
                op.erase()
        _erase_unused(module, combiners)

    def _lower_plain(self, shuffle: ShuffleOp) -> None:
        op = shuffle.operation
        self._check(op, shuffle.values)
        lane = ir.arith.index_cast(b.integer_type(PIECE_BITS), shuffle.lane)
        values = []
        for value, result in zip(shuffle.values, op.results, strict=True):
            is_read = is_used(result)
            values.append(_shuffle(value, "idx", lane) if is_read else value)
        replace_op(op, values)

    def _check(self, op: ir.Operation, values: Sequence[ir.Value]) -> None:
        if any(isinstance(value.type, ir.ComplexType) for value in values):
            refuse(self.NAME, op, "expected integers and floats; run expand-complex first")

    def _lower(self, shuffle: ShuffleReduceOp, combiners: dict[str, ir.Operation]) -> None:
        op, combiner = shuffle.operation, combiners[shuffle.combiner]
        self._check(op, shuffle.values)
        by = create_integer(shuffle.distance, b.integer_type(PIECE_BITS))
        arguments = [*shuffle.values, *(_shuffle(value, "xor", by) for value in shuffle.values)]
        blocks = combiner.regions[0].blocks
        if len(blocks) == 1 and count_ops(combiner, self.max_ops) <= self.max_ops:
            copy = combiner.clone(ip=False)
            values: Sequence[ir.Value] = move_body(body_of(copy), arguments, op)
            copy.erase()
        else:
            types = [value.type for value in shuffle.values]
            values = list(ir.func.CallOp(types, shuffle.combiner, arguments).results)
        replace_op(op, values)


def _shuffle(value: ir.Value, mode: str, by: ir.Value) -> ir.Value:
    """Return the value of the lane whose number differs by ``by``, mode ``xor``, or is that, mode ``idx``."""
    return from_pieces([_shuffle_piece(piece, mode, by) for piece in pieces_of(value)], value.type)


def _shuffle_piece(piece: ir.Value, mode: str, by: ir.Value) -> ir.Value:
    made = ir.Operation.create(
        "gpu.shuffle",
        results=[piece.type, b.integer_type(1)],
        operands=[piece, by, create_integer(WARP_SIZE, piece.type)],
        attributes={"mode": ir.Attribute.parse(f"#gpu.shuffle_mode<{mode}>")},
    )
    return made.results[0]


def _erase_unused(module: ir.Module, combiners: dict[str, ir.Operation]) -> None:
    """Erase the private functions that nothing refers to."""
    used = {
        ir.FlatSymbolRefAttr(value).value
        for op in walk(module.operation)
        for value in (op.attributes[name] for name in op.attributes)
        if isinstance(value, ir.FlatSymbolRefAttr)
    }
    for name, function in combiners.items():
        if name not in used and "sym_visibility" in function.attributes:
            function.erase()
