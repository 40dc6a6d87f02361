"""A ring of buffers in shared memory that one warp fills and others empty, with a pair of mbarriers for each."""

from xgpu import ir
from xgpu.dialects.block.waits import MbarrierInitOp, MbarrierWaitOp
from xgpu.passes.llvm.memory import element_pointer
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.scf_ops import create_integer
from xgpu.records import dataclass

_BARRIER_BYTES = 8


def i32(value: int) -> ir.Value:
    """Create an i32."""
    return create_integer(value, ir.IntegerType.get_signless(32))


def as_i32(value: ir.Value) -> ir.Value:
    """Return an index as an i32."""
    return ir.arith.index_cast(ir.IntegerType.get_signless(32), value)


def offset(pointer: ir.Value, by: ir.Value | int) -> ir.Value:
    """Return the address so many bytes after ``pointer``."""
    return element_pointer(pointer, b.integer_type(8), by)


@dataclass(frozen=True)
class Ring:
    """``stages`` buffers, whose mbarriers begin at ``barriers``: all that tell of a full one, then of an empty one."""

    stages: int
    barriers: ir.Value

    @staticmethod
    def bytes(stages: int) -> int:
        """Return what the mbarriers of a ring take."""
        return 2 * stages * _BARRIER_BYTES

    def initialize(self, consumers: int) -> None:
        """Make the mbarriers, for one that fills and so many arrivals of those that empty."""
        for stage in range(self.stages):
            MbarrierInitOp.create([self._at(stage)], attributes={"count": 1})
            MbarrierInitOp.create([self._at(self.stages + stage)], attributes={"count": consumers})

    def full(self, slot: ir.Value) -> ir.Value:
        """Return the mbarrier that tells that a buffer is full."""
        return offset(self.barriers, ir.arith.muli(slot, i32(_BARRIER_BYTES)))

    def empty(self, slot: ir.Value) -> ir.Value:
        """Return the mbarrier that tells that a buffer is empty."""
        first = offset(self.barriers, self.stages * _BARRIER_BYTES)
        return offset(first, ir.arith.muli(slot, i32(_BARRIER_BYTES)))

    def wait_full(self, slot: ir.Value, phase: ir.Value) -> None:
        """Wait until a buffer was filled for the ``phase``th time, given by its parity."""
        MbarrierWaitOp.create([self.full(slot), phase])

    def wait_empty(self, slot: ir.Value, phase: ir.Value) -> None:
        """Wait until a buffer was emptied after it was filled the time before; at first it is empty."""
        MbarrierWaitOp.create([self.empty(slot), ir.arith.xori(phase, i32(1))])

    def next(self, slot: ir.Value, phase: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the slot and the phase of the step that follows."""
        after = ir.arith.addi(slot, i32(1))
        wraps = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, after, i32(self.stages))
        turned = ir.arith.xori(phase, i32(1))
        return ir.arith.select(wraps, i32(0), after), ir.arith.select(wraps, turned, phase)

    def _at(self, number: int) -> ir.Value:
        return offset(self.barriers, number * _BARRIER_BYTES)
