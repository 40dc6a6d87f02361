"""The pass `unroll-loops`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.dialects.attributes import (
    BLOCK,
    EARLY,
    FULL,
    FUNCTION_OPERATIONS,
    UNROLL,
    UNROLLED_OPERATIONS,
    int_array_of,
)
from xgpu.passes.framework.base import Pass, operations_of
from xgpu.passes.framework.remarks import remark
from xgpu.passes.support.ranges import constant_of
from xgpu.passes.support.regions import move_body, unroll_of
from xgpu.passes.support.scf_ops import create_integer
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import blocks_of, body_of, count_ops, replace_op, walk

_VECTOR_ACCESSES = {"vector.extract": 1, "vector.insert": 2}
"""Accesses to elements of vectors: how many operands come before the positions, the vector last."""
_LONG_FUNCTIONS = frozenset(
    (
        *(
            f"math.{name}"
            for name in "sin cos tan powf asin acos atan atan2 sinh cosh asinh acosh atanh erf erfc".split()
        ),
        *(f"xgpu.{name}" for name in "lgamma digamma erf_inv bessel_i0e bessel_i1e".split()),
    )
)
"""Functions that become as many operations as that, some of them calls, around which registers are stored."""
_READS = frozenset(("tensor.extract", "vector.transfer_read"))
_ADDRESS_REGISTERS = 2
"""Registers of an address."""
_DYNAMIC = -(1 << 63)
"""Marker of ``static_position`` for a position that is an operand."""


@dataclass(frozen=True)
class UnrollLoops(Pass):
    """Unrolls short loops.

    An `scf.for` with constant bounds is unrolled if it has few iterations and these fit the budget, inner loops first.
    A loop over the elements of a vector that is too large for it is marked ``xgpu.unroll = "full"``, since LLVM keeps a
    vector in registers only if all positions are constants. Loops with a loop inside that stays are not unrolled, nor
    are those marked ``xgpu.unroll = "none"``; a loop of one iteration or none always goes away, and so does one marked
    ``"early"``, whatever its size. So do versions of a loop, one in each branch of a conditional, that read differently
    many elements: LLVM merges the ends of both once they are unrolled, and each of these reads has an address of its
    own in either. They are unrolled where a thread has registers for the addresses.
    Remarks say why other loops stay.
    Needs: nothing. Run vectorize-accesses before it, which looks at loops; canonicalize and cse after it.

    ```mlir
    %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %init) -> (f32) {
      %x = vector.extract %v[%i] : f32 from vector<2xf32>
      %b = arith.addf %a, %x : f32
      scf.yield %b : f32
    }
    ```
    becomes
    ```mlir
    %x0 = vector.extract %v[0] : f32 from vector<2xf32>
    %b0 = arith.addf %init, %x0 : f32
    %x1 = vector.extract %v[1] : f32 from vector<2xf32>
    %r = arith.addf %b0, %x1 : f32
    ```
    """

    NAME: ClassVar[str] = "unroll-loops"
    max_trip: int = 32
    """Iterations up to which a loop is unrolled."""
    max_ops: int = UNROLLED_OPERATIONS
    """Operations that an unrolled loop may have, functions written out."""
    target: DeviceName = DEFAULT_DEVICE
    """The device that says how many registers a thread has."""

    def apply(self, module: ir.Module) -> None:
        """Unroll every loop of ``module`` that allows it, inner loops first."""
        for loop in walk(module.operation, "scf.for"):
            trips = _trips(loop)
            refusal = _NOT_CONSTANT if trips is None else self._refusal(loop, trips)
            if trips is not None and refusal is None:
                _unroll(loop, trips)
                continue
            remark(self.NAME, loop, "the loop stays: {}", refusal)
            if trips is not None and len(trips) <= self.max_trip and unroll_of(loop) is None and _vector_users(loop):
                loop.attributes[UNROLL] = ir.StringAttr.get(FULL)

    def _refusal(self, loop: ir.Operation, trips: range) -> Reason | None:
        """Return why ``loop`` is not unrolled; None if it is."""
        if len(trips) < 2 or unroll_of(loop) == EARLY:
            return None
        if unroll_of(loop) == "none":
            return Reason('few threads execute it (xgpu.unroll = "none")')
        if len(trips) > self.max_trip:
            return Reason("it has {} iterations, more than max-trip={}", (len(trips), self.max_trip))
        limit = self.max_ops // len(trips)
        if (count := _size(loop, limit)) > limit:
            return Reason("{} iterations of {} operations or more exceed max-ops={}", (len(trips), count, self.max_ops))
        # The walk finds the loop itself, and those inside it that stay.
        if len(walk(loop, "scf.for")) > 1:
            return Reason("a loop inside it stays")
        return _uneven(loop, self.target.device)


_NOT_CONSTANT = Reason("its bounds are not constants")


def _uneven(loop: ir.Operation, device: Device) -> Reason | None:
    """Return why ``loop`` is a version that stays: it reads too many elements, and the other one differently many.

    Unrolled loops in the versions read as many as before, so the answer is the same for both, whichever is asked first.
    """
    conditional = loop.parent
    branches = [] if conditional is None or conditional.name != "scf.if" else list(blocks_of(conditional.operation))
    loops = [each for branch in branches for each in operations_of(branch, ("scf.for",))]
    # A loop of one iteration goes away.
    if len(branches) != 2 or len(loops) != 2 or any(len(_trips(each) or ()) < 2 for each in loops):
        return None
    if loops[0].block == loops[1].block:
        return None
    most = device.registers_per_sm // _threads_around(loop, device) // _ADDRESS_REGISTERS
    first, second = map(_elements_read, branches)
    if first == second or min(first, second) <= most:
        return None
    return Reason("its versions read {} and {} elements, and {} addresses are in registers", (first, second, most))


def _threads_around(op: ir.Operation, device: Device) -> int:
    """Return how many threads a block of the function around ``op`` has, the most there can be if it does not say."""
    while op.name != "func.func":
        assert op.parent is not None
        op = op.parent.operation
    block = op.attributes.get(BLOCK)
    return device.max_threads_per_block if block is None else math.prod(int_array_of(block))


def _elements_read(block: ir.Block) -> int:
    """Return how many elements the operations of a block read, all iterations of loops with constant bounds counted."""
    count = 0
    for op in (view.operation for view in block.operations):
        if op.name in _READS:
            type_ = op.results[0].type
            count += math.prod(ir.VectorType(type_).shape) if isinstance(type_, ir.VectorType) else 1
        times = len(_trips(op) or (0,)) if op.name == "scf.for" else 1
        count += times * sum(_elements_read(inner) for region in op.regions for inner in region.blocks)
    return count


def _size(loop: ir.Operation, limit: int) -> int:
    """Return how many operations a loop will have once functions are written out; stops counting beyond ``limit``."""
    count = count_ops(loop, limit)
    return count if count > limit else count + (FUNCTION_OPERATIONS - 1) * len(walk(loop, *_LONG_FUNCTIONS))


def _trips(loop: ir.Operation) -> range | None:
    """Return the values of the induction variable; None if the bounds are not constant."""
    lower, upper, step = (constant_of(bound) for bound in list(loop.operands)[:3])
    if lower is None or upper is None or step is None or step <= 0 or "unsignedCmp" in loop.attributes:
        return None
    return range(lower, upper, step)


def _vector_users(loop: ir.Operation) -> list[ir.Operation]:
    """Return the accesses to elements of vectors by the induction variable of ``loop``."""
    users = [use.owner.operation for use in body_of(loop).arguments[0].uses]
    return [user for user in dict.fromkeys(users) if user.name in _VECTOR_ACCESSES]


def _unroll(loop: ir.Operation, trips: range) -> None:
    """Replace ``loop`` by its iterations."""
    carried = list(loop.operands)[3:]
    type_ = body_of(loop).arguments[0].type
    for value in trips:
        source = loop if value == trips[-1] else loop.clone(ip=False)
        for user in _vector_users(source):
            _make_static(user, body_of(source).arguments[0], value)
        with ir.InsertionPoint(loop), loop.location:
            induction = create_integer(value, type_)
        carried = move_body(body_of(source), [induction, *carried], loop)
        if source != loop:
            source.erase()
    replace_op(loop, carried)


def _make_static(access: ir.Operation, position: ir.Value, value: int) -> None:
    """Replace the operand ``position`` of a vector access by its ``value``, a part of the operation's attributes."""
    fixed = _VECTOR_ACCESSES[access.name]
    operands = list(access.operands)
    dynamic = iter(operands[fixed:])
    sizes = ir.VectorType(operands[fixed - 1].type).shape
    kept, static = operands[:fixed], []
    for number, size in zip(ir.DenseI64ArrayAttr(access.attributes["static_position"]), sizes, strict=False):
        operand = next(dynamic) if number == _DYNAMIC else None
        if operand == position and 0 <= value < size:
            static.append(value)
        else:
            static.append(number)
            kept += [operand] if operand is not None else []
    new = ir.Operation.create(
        access.name,
        results=[access.results[0].type],
        operands=kept,
        attributes={"static_position": ir.DenseI64ArrayAttr.get(static)},
        loc=access.location,
        ip=ir.InsertionPoint(access),
    )
    replace_op(access, list(new.results))
