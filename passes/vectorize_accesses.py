"""The pass `vectorize-accesses`."""

from collections.abc import Iterator, Sequence
from math import gcd
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import map_of
from xgpu.dialects.threads import AtomicAddOp, AtomicRmwOp
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.indexing.affine import Dim, constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import array_name, is_heard, remark
from xgpu.passes.support.atomic_updates import FLOAT_ADD, find_update
from xgpu.passes.support.consecutive_accesses import ConsecutiveAccess, are_apart, index_at, multiple_of, only_dims
from xgpu.passes.support.index_ops import create_index, has_uses
from xgpu.passes.support.ranges import constant_of
from xgpu.passes.support.regions import unroll_of
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import block_of, defining_op, element_of, users_of, walk
from xgpu.target_machine import ADDED_AS_VECTORS

_MAX_TRIPS = 16
_INITS = 3
"""The number of bounds and steps among the operands of `scf.for`, before the initial values of what it carries."""
_ELEMENT_WRITES = frozenset(("tensor.insert", AtomicRmwOp.OPERATION_NAME))
_WRITTEN_IN_LOOP = Reason("the loop writes to it")
_DYNAMIC = -(1 << 63)
"""Marks a dynamic position in the ``static_position`` of `vector.extract` and `vector.insert`."""


@dataclass(frozen=True)
class VectorizeAccesses(Pass):
    """Replaces the accesses of a short loop to consecutive elements by vector accesses.

    Looks at `scf.for` from 0 to V, a power of two from 2 to 16, and at the accesses directly in its body: each takes
    place V times, so V elements from the first on are within the tensor. A read from a tensor that the loop does not
    change, at an index that is the induction variable plus a multiple of V that the loop does not change, becomes one
    `vector.transfer_read` before the loop and a `vector.extract` in it. So does a read of a carried tensor at the index
    that the step then writes to. A carried tensor that is only inserted into so becomes a carried vector, and one
    `vector.transfer_write` after the loop; of several, if a step inserts several elements, and no step one of another.
    If the rest of the index is a multiple only of a smaller power of two w >= 2, there are V / w accesses of w
    elements. Atomic additions to f16, bf16 and f32 become `xgpu.atomic_add` in the same way. Indices that count down
    are found as well: the loop then takes the vector's elements from the last to the first.
    Needs: flatten-tensors and simplify-indexing (tensors of rank 1, one index expression for each access) and
    loop-invariant-code-motion (accesses that do not depend on the loop at all are gone). unroll-loops then makes the
    positions in the vectors constants: loops marked ``xgpu.unroll = "none"`` keep their accesses, as LLVM would keep in
    memory a vector that is indexed by a position known only at run time. Remarks say which accesses stay of single
    elements, or of fewer than V, and why.

    ```mlir
    scf.for %s = %c0 to %c4 step %c1 ... {
      %k = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 31], d1 in [0, 3]>}
      %x = tensor.extract %t[%k] : tensor<128xf32>
    ```
    becomes
    ```mlir
    %k = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 31]>} : (index) -> index
    %v = vector.transfer_read %t[%k], %zero {in_bounds = [true]} : tensor<128xf32>, vector<4xf32>
    scf.for %s = %c0 to %c4 step %c1 ... {
      %x = vector.extract %v[%s] : f32 from vector<4xf32>
    ```
    """

    NAME: ClassVar[str] = "vectorize-accesses"

    def apply(self, module: ir.Module) -> None:
        """Vectorize the accesses in every suitable loop of ``module``."""
        for op in walk(module.operation, "scf.for"):
            if unroll_of(op) == "none":
                continue
            trips = _trips(op)
            if isinstance(trips, int):
                _Loop(op, trips).vectorize()
            elif is_heard():
                _remark_loop(op, trips)


class _Loop:
    """A loop of ``trips`` steps whose accesses are being vectorized."""

    def __init__(self, op: ir.Operation, trips: int):
        self._op = op
        self._trips = trips
        self._body = op.regions[0].blocks[0]
        self._step = self._body.arguments[0]
        self._read: dict[tuple[ir.Value, ConsecutiveAccess], ir.Value] = {}
        self._replaced: list[ir.Operation] = []

    def vectorize(self) -> None:
        """Vectorize reads, then carried tensors."""
        for position, argument in enumerate(list(self._body.arguments)[1:]):
            self._read_before_loop(position, argument)
        for view in list(self._body.operations):
            if view.operation.name == "tensor.extract":
                self._vectorize_read(view.operation)
        for position, argument in enumerate(list(self._body.arguments)[1:]):
            self._vectorize_carried(position, argument)
        if is_heard():
            self._remark_conditional()
        _erase(self._replaced)

    def _read_before_loop(self, position: int, argument: ir.Value) -> None:
        """Read of a carried tensor what it is before the loop, if each step reads but the element that it writes."""
        tensor, end = self._op.operands[_INITS + position], self._body.operations[len(self._body.operations) - 1]
        users = users_of(argument)
        reads = [user for user in users if user.name == "tensor.extract"]
        writes = [user for user in users if user.name == "tensor.insert" and user.operands[1] == argument]
        if not reads or len(writes) != 1 or len(reads) + 1 != len(users) or _whole(tensor) == self._trips:
            return
        if any(user.block != self._body or len(user.operands) < 2 for user in users):
            return
        if end.operation.operands[position] != writes[0].results[0]:
            return
        accesses = {self._access(user.operands[len(user.operands) - 1]) for user in users}
        if len(accesses) == 1 and not any(isinstance(access, Reason) for access in accesses):
            for read in reads:
                read.operands[0] = tensor

    def _vectorize_read(self, op: ir.Operation) -> None:
        tensor, index = op.operands
        access = self._access(index) if self._is_invariant(tensor) else _WRITTEN_IN_LOOP
        self._remark("load of", op, tensor, access)
        if isinstance(access, Reason):
            return
        if _whole(tensor) == access.width:
            # Of a whole tensor written over another, MLIR's canonicalize makes the first tensor itself: no copy.
            return
        key = (tensor, access)
        with op.location:
            if key not in self._read:
                with ir.InsertionPoint(self._op):
                    self._read[key] = self._read_vector(tensor, access)
            with ir.InsertionPoint(op):
                element = ir.Operation.create(
                    "vector.extract",
                    results=[op.results[0].type],
                    operands=[self._read[key], self._position(access)],
                    attributes={"static_position": ir.DenseI64ArrayAttr.get([_DYNAMIC])},
                )
        op.results[0].replace_all_uses_with(element.results[0])
        self._replaced.append(op)

    def _vectorize_carried(self, position: int, argument: ir.Value) -> None:
        """Carry a vector instead of a tensor if each step writes elements, or adds to one, and does nothing else."""
        tensor = self._op.operands[_INITS + position]
        writes = self._writes_in_turn(position, argument)
        if len(writes) > 1:
            found = self._accesses_apart(writes)
            if not isinstance(found, Reason):
                self._carry_vector(position, argument, writes, [write.operands[0] for write in writes], found)
            accesses: Sequence[ConsecutiveAccess | Reason] = (
                [found] * len(writes) if isinstance(found, Reason) else found
            )
            for write, access in zip(writes, accesses, strict=True):
                self._remark("store to", write, tensor, access)
            return
        for write in self._writes_to(argument):
            access = self._access_of_write(position, argument, write)
            if not isinstance(access, Reason):
                with ir.InsertionPoint(write), write.location:
                    value = _written(write)
                    if isinstance(value, Reason):
                        access = value
                    else:
                        self._carry_vector(position, argument, [write], [value], [access])
            self._remark("store to", write, tensor, access)

    def _writes_in_turn(self, position: int, argument: ir.Value) -> list[ir.Operation]:
        """Return the insertions of a step into the carried tensor ``argument``, if it does nothing else with it."""
        end = self._body.operations[len(self._body.operations) - 1].operation
        writes, last = list[ir.Operation](), argument
        while last != end.operands[position]:
            users = users_of(last)
            if len(users) != 1 or users[0].name != "tensor.insert" or users[0].block != self._body:
                return []
            if list(users[0].operands)[-2:-1] != [last]:
                return []
            writes.append(users[0])
            last = users[0].results[0]
        return writes

    def _accesses_apart(self, writes: Sequence[ir.Operation]) -> list[ConsecutiveAccess] | Reason:
        """Return where ``writes`` access a tensor, if no two of them access an element, in whichever steps."""
        found = list[ConsecutiveAccess]()
        for write in writes:
            access = self._access(write.operands[len(write.operands) - 1])
            if isinstance(access, Reason):
                return access
            if not all(are_apart(access, other, self._trips) for other in found):
                return Reason("a step writes to it more than once, and perhaps where another step does")
            found.append(access)
        return found

    def _writes_to(self, argument: ir.Value) -> list[ir.Operation]:
        """Return the writes of elements of the carried tensor ``argument`` that are directly in the body."""
        users = users_of(argument)
        return [
            user
            for user in dict.fromkeys(users)
            if user.name in _ELEMENT_WRITES and user.block == self._body and list(user.operands)[-2:-1] == [argument]
        ]

    def _access_of_write(self, position: int, argument: ir.Value, write: ir.Operation) -> ConsecutiveAccess | Reason:
        """Return where ``write`` accesses the tensor that the loop carries, if that can be carried as a vector."""
        end = self._body.operations[len(self._body.operations) - 1].operation
        if len(list(argument.uses)) > 1:
            return Reason("the loop reads it as well")
        if len(list(write.results[0].uses)) != 1 or end.operands[position] != write.results[0]:
            return Reason("a step writes to it more than once")
        return self._access(write.operands[len(write.operands) - 1])

    def _carry_vector(
        self,
        position: int,
        argument: ir.Value,
        writes: Sequence[ir.Operation],
        values: Sequence[ir.Value],
        accesses: Sequence[ConsecutiveAccess],
    ) -> None:
        """Carry the ``values`` that ``writes`` are given as a vector instead of the tensor; write it after the loop."""
        result, tensor = self._op.results[position], self._op.operands[_INITS + position]
        vector_type = ir.VectorType.get([self._trips * len(writes)], values[0].type)
        with ir.InsertionPoint(self._op):
            self._op.operands[_INITS + position] = _zeros(vector_type)
        argument.set_type(vector_type)
        filled = argument
        for number, (write, value, access) in enumerate(zip(writes, values, accesses, strict=True)):
            with ir.InsertionPoint(write), write.location:
                filled = ir.Operation.create(
                    "vector.insert",
                    results=[vector_type],
                    operands=[value, filled, self._position(access, number * self._trips)],
                    attributes={"static_position": ir.DenseI64ArrayAttr.get([_DYNAMIC])},
                ).results[0]
        (use,) = writes[-1].results[0].uses
        use.owner.operation.operands[use.operand_number] = filled
        users = [(use.owner.operation, use.operand_number) for use in result.uses]
        result.set_type(vector_type)
        with ir.InsertionPoint.after(self._op), writes[-1].location:
            written = tensor
            for number, (write, access) in enumerate(zip(writes, accesses, strict=True)):
                adds = write.name == AtomicRmwOp.OPERATION_NAME
                written = self._write_vector(result, written, access, number * self._trips, adds)
        for user, number in users:
            user.operands[number] = written
        self._replaced += reversed(writes)

    def _read_vector(self, tensor: ir.Value, access: ConsecutiveAccess) -> ir.Value:
        """Read the elements that the loop extracts, in pieces as wide as their index allows."""
        element_type = element_of(tensor)
        piece_type = ir.VectorType.get([access.width], element_type)
        padding = _zeros(element_type)
        pieces = []
        for offset in range(0, self._trips, access.width):
            read = ir.Operation.create(
                "vector.transfer_read",
                results=[piece_type],
                operands=[tensor, index_at(access, offset), padding],
                attributes=_transfer_attributes(),
            )
            pieces.append(read.results[0])
        if len(pieces) == 1:
            return pieces[0]
        whole_type = ir.VectorType.get([self._trips], element_type)
        whole = _zeros(whole_type)
        for number, piece in enumerate(pieces):
            insert = ir.Operation.create(
                "vector.insert_strided_slice",
                results=[whole_type],
                operands=[piece, whole],
                attributes={"offsets": _integers([number * access.width]), "strides": _integers([1])},
            )
            whole = insert.results[0]
        return whole

    def _write_vector(
        self, vector: ir.Value, tensor: ir.Value, access: ConsecutiveAccess, first: int, adds: bool
    ) -> ir.Value:
        """Write or add what the loop has put into the carried vector from ``first`` on; return the new tensor.

        In pieces as wide as their index allows.
        """
        type_ = ir.VectorType(vector.type)
        piece_type = ir.VectorType.get([access.width], type_.element_type)
        for offset in range(0, self._trips, access.width):
            piece = vector
            if piece_type != type_:
                sizes = {
                    "offsets": _integers([first + offset]),
                    "sizes": _integers([access.width]),
                    "strides": _integers([1]),
                }
                piece = ir.Operation.create(
                    "vector.extract_strided_slice", results=[piece_type], operands=[vector], attributes=sizes
                ).results[0]
            write = ir.Operation.create(
                AtomicAddOp.OPERATION_NAME if adds else "vector.transfer_write",
                results=[tensor.type],
                operands=[piece, tensor, index_at(access, offset)],
                attributes=None if adds else _transfer_attributes(),
            )
            tensor = write.results[0]
        return tensor

    def _access(self, index: ir.Value) -> ConsecutiveAccess | Reason:
        """Return the access at ``index`` if that is plus or minus the induction variable plus what does not change."""
        if index == self._step:
            return ConsecutiveAccess(IndexingMap((), (), (constant(0),)), (), self._trips, backwards=False)
        op = defining_op(index)
        if op is None or op.name != ApplyIndexingOp.OPERATION_NAME:
            return Reason("its index is {}", ("carried by the loop" if op is None else f"a result of '{op.name}'",))
        operands, map_ = list(op.operands), only_dims(map_of(op.attributes["map"]))
        expr = map_.results[ir.OpResult(index).result_number]
        positions = [position for position, operand in enumerate(operands) if operand == self._step]
        stride = dict(expr.terms).get(Dim(positions[0]), 0) if len(positions) == 1 else 0
        if stride not in (1, -1):
            return Reason("its index does not move by 1 from step to step ({})", (expr,))
        base = expr - dim(positions[0]) if stride == 1 else expr + dim(positions[0]) - (self._trips - 1)
        used = sorted(base.variables()[0])
        width = gcd(multiple_of(base), self._trips)
        if positions[0] in used:
            return Reason("its index moves unevenly ({})", (expr,))
        if not all(self._is_invariant(operands[i]) for i in used):
            return Reason("its index depends on what the loop computes ({})", (expr,))
        if width < 2:
            return Reason("its index is a multiple of {} only ({})", (width, base))
        renamed = {old: dim(new) for new, old in enumerate(used)}
        facts = [(e.substitute(renamed), b) for e, b in map_.constraints if e.variables()[0] <= set(used)]
        base_map = IndexingMap(tuple(map_.dims[i] for i in used), (), (base.substitute(renamed),), tuple(facts))
        return ConsecutiveAccess(base_map, tuple(operands[i] for i in used), width, stride == -1)

    def _remark(self, what: str, op: ir.Operation, tensor: ir.Value, access: ConsecutiveAccess | Reason) -> None:
        """Say why an access stays one of single elements, or of fewer than the loop has steps."""
        if not is_heard():
            return
        if isinstance(access, Reason):
            remark(VectorizeAccesses.NAME, op, "{} {}: {} scalars, {}", what, array_name(tensor), self._trips, access)
        elif access.width < self._trips:
            counts = self._trips // access.width, access.width, access.width, access.base.results[0]
            text = "{} {}: {} vectors of {}, its index is a multiple of {} only ({})"
            remark(VectorizeAccesses.NAME, op, text, what, array_name(tensor), *counts)

    def _remark_conditional(self) -> None:
        """Say which accesses are not considered, as not every step may execute them."""
        for op, what, tensor in _accesses_in(self._op):
            if op.block != self._body:
                self._remark(what, op, tensor, Reason("it is inside a condition that stays in the loop"))

    def _position(self, access: ConsecutiveAccess, first: int = 0) -> ir.Value:
        """Create the position of a step's element in the vector, whose elements are from ``first`` on."""
        if not access.backwards and not first:
            return self._step
        start = create_index(first + (self._trips - 1 if access.backwards else 0))
        name = "arith.subi" if access.backwards else "arith.addi"
        return ir.Operation.create(name, results=[start.type], operands=[start, self._step]).results[0]

    def _is_invariant(self, value: ir.Value) -> bool:
        """Tell whether ``value``, used directly in the body, is made outside the loop."""
        return block_of(value) != self._body


def _whole(tensor: ir.Value) -> int | None:
    """Return the number of elements of a tensor of rank 1."""
    shape = ir.RankedTensorType(tensor.type).shape
    return shape[0] if len(shape) == 1 else None


def _trips(loop: ir.Operation) -> int | Reason:
    """Return the number of steps of a loop from 0 by 1 if it is a power of two that a vector may have."""
    lower, upper, step = (constant_of(value) for value in list(loop.operands)[:_INITS])
    if lower != 0 or step != 1 or upper is None:
        return Reason("the loop is not one from 0 by 1 to a constant")
    if not 2 <= upper <= _MAX_TRIPS or upper & (upper - 1):
        return Reason("the loop has {} steps, not 2, 4, 8 or {}", (upper, _MAX_TRIPS))
    return upper


def _remark_loop(loop: ir.Operation, reason: Reason) -> None:
    """Say why accesses to neighbours stay scalar, as the number of steps of ``loop`` is none that a vector has."""
    step = loop.regions[0].blocks[0].arguments[0]
    for op, what, tensor in _accesses_in(loop):
        if abs(_stride(op.operands[len(op.operands) - 1], step)) == 1:
            remark(VectorizeAccesses.NAME, op, "{} {}: a scalar in each step, {}", what, array_name(tensor), reason)


def _accesses_in(loop: ir.Operation) -> Iterator[tuple[ir.Operation, str, ir.Value]]:
    """Yield the accesses in ``loop``, but for those in loops inside it, at indices that its step is part of."""
    for op in walk(loop):
        if op.name not in ("tensor.extract", *_ELEMENT_WRITES) or len(op.operands) < 2:
            continue
        around = op.parent
        while around is not None and around.name != "scf.for":
            around = around.parent
        if around is None or around.operation != loop:
            continue
        *_, tensor, index = op.operands
        if _stride(index, loop.regions[0].blocks[0].arguments[0]):
            yield op, "load of" if op.name == "tensor.extract" else "store to", tensor


def _stride(index: ir.Value, step: ir.Value) -> int:
    """Return by how much ``index`` grows when ``step`` does by 1, as far as a factor of ``step`` tells."""
    op = defining_op(index)
    if index == step or op is None or op.name != ApplyIndexingOp.OPERATION_NAME or step not in list(op.operands):
        return int(index == step)
    map_ = only_dims(map_of(op.attributes["map"]))
    terms = dict(map_.results[ir.OpResult(index).result_number].terms)
    return terms.get(Dim(list(op.operands).index(step)), 0)


def _written(write: ir.Operation) -> ir.Value | Reason:
    """Return what a step writes, or adds atomically, unless it updates otherwise, or what is not added as vectors.

    The insertion point is where it may be created.
    """
    if write.name == "tensor.insert":
        return write.operands[0]
    type_ = element_of(write.operands[0])
    if str(type_) not in ADDED_AS_VECTORS:
        return Reason("atomic updates of {} are not made as vectors", (type_,))
    update = find_update(write)
    if update.kind != FLOAT_ADD:
        return Reason("atomic updates other than additions of floats are not made as vectors")
    return update.values()[0]


def _transfer_attributes() -> dict[str, ir.Attribute]:
    """One tensor or vector, one index, one padding value or tensor, no mask."""
    return {
        "in_bounds": ir.ArrayAttr.get([ir.BoolAttr.get(True)]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0]),
        "permutation_map": ir.AffineMapAttr.get(ir.AffineMap.get_identity(1)),
    }


def _integers(values: Sequence[int]) -> ir.Attribute:
    int64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(int64, value) for value in values])


def _zeros(type_: ir.Type) -> ir.Value:
    """Create a zero, or a vector of zeros."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    is_float = isinstance(element, ir.FloatType)
    zero = ir.FloatAttr.get(element, 0.0) if is_float else ir.IntegerAttr.get(element, 0)
    value = ir.DenseElementsAttr.get_splat(type_, zero) if isinstance(type_, ir.VectorType) else zero
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": value}).results[0]


def _erase(ops: Sequence[ir.Operation]) -> None:
    """Erase accesses that were replaced, and the index computations that nothing else uses."""
    indices = {}
    for op in ops:
        index = op.operands[len(op.operands) - 1]
        op.erase()
        if (source := defining_op(index)) is not None and source.name == ApplyIndexingOp.OPERATION_NAME:
            indices[index] = source
    for source in indices.values():
        if not has_uses(source):
            source.erase()
