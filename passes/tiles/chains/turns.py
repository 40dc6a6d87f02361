"""Turns of warp groups: one starts products only after the one before it has started its own.

So while tensor cores compute the products of one, others compute what lies between theirs. Without turns all would do
the same at the same time. (Source: FlashAttention-3's ping-pong of two warp groups.)
"""

from xgpu import ir
from xgpu.dialects.block.waits import NamedBarrierOp
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.ring import as_i32, i32
from xgpu.passes.tiles.roles import ThreadNumbers, equal
from xgpu.passes.tiles.structured import only_if
from xgpu.records import dataclass
from xgpu.target_machine import WARPGROUP_SIZE


@dataclass(frozen=True)
class Turns:
    """Turns of ``groups`` warp groups, each with a named barrier; the first one has number ``first``."""

    groups: int
    first: int
    place: ThreadNumbers

    def begin(self) -> None:
        """Write what comes before the first turn, which is that of group 0."""
        if self.groups > 1:
            with only_if(equal(self.place.group, self.groups - 1)):
                self._meet(create_index(0), wait=False)

    def take(self) -> None:
        """Wait for the turn of this warp group."""
        if self.groups > 1:
            self._meet(self.place.group, wait=True)

    def hand_on(self) -> None:
        """Let the next warp group have its turn."""
        if self.groups > 1:
            is_last = equal(self.place.group, self.groups - 1)
            after = ir.arith.addi(self.place.group, create_index(1))
            self._meet(ir.arith.select(is_last, create_index(0), after), wait=False)

    def _meet(self, group: ir.Value, wait: bool) -> None:
        number = ir.arith.addi(as_i32(group), i32(self.first))
        NamedBarrierOp.create([number], attributes={"threads": 2 * WARPGROUP_SIZE, "wait": wait})
