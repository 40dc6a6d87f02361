"""The shared memory of a kernel of level ``tiles`` over time: which tile lies where, from which operation to which."""

from collections.abc import Callable

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel
from xgpu.block_plan.order.events import BlockOrder, StagedGraph
from xgpu.block_plan.order.lifetimes import ends, lifetimes, spans
from xgpu.dialects import attributes
from xgpu.passes.blocks.support.decided import buffers_of, bytes_of, layouts_of, meetings_of, order_of, plan_of
from xgpu.records import dataclass

_USED, _FREE = "#", "."


@dataclass(frozen=True, eq=False)
class MemoryMap:
    """The tiles of a kernel about which all is decided. ``name`` says what a result of an operation is called."""

    kernel: BlockKernel
    name: Callable[[ir.Operation, int], str]

    def lines(self) -> list[str]:
        """Return a line for each tile, by its place, after one for each loop; a column for each span of time.

        In the spans between two meetings of all threads a tile is in use (#) or not (.).
        """
        plan, met = plan_of(self.kernel), meetings_of(self.kernel)
        if not plan.memory:
            return []
        order = order_of(self.kernel, plan)
        used, through = lifetimes(plan, order, met), spans(plan, order, met)
        count = max((last for _, last in through.values()), default=0) + 1
        rows = [["bytes", "tile", "from", "to", "over time"]]
        for node, (first, last) in sorted(through.items()):
            if self.kernel.graph.nodes[node].kind == "steps":
                steps = "".join("-" if first <= span <= last else " " for span in range(count))
                rows.append(["", "", *[self._place(node)] * 2, steps])
        rows += [self._row(plan, order, memory, used[memory], count) for memory in self._by_offset(plan)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]

    def _by_offset(self, plan: StagedGraph) -> list[int]:
        offsets = self._offsets
        return sorted(set(plan.memory.values()), key=lambda memory: (offsets[memory], memory))

    @property
    def _offsets(self) -> dict[int, int]:
        return {tile: attributes.int_of(at) for tile, at in self.kernel.given(attributes.OFFSET).items()}

    def _row(self, plan: StagedGraph, order: BlockOrder, memory: int, used: int, count: int) -> list[str]:
        begin = self._offsets[memory]
        size = bytes_of(self.kernel, plan, memory, layouts_of(self.kernel, plan)[memory])
        value, buffers = self.kernel.values[memory], buffers_of(plan, memory)
        op = self.kernel.ops[self.kernel.graph.maker[memory]]
        called = self.name(op, [*op.results].index(ir.OpResult(value)))
        called += f", {buffers} buffers" if buffers > 1 else ""
        first, last = ends(plan, order)[memory]
        over_time = "".join(_USED if used >> span & 1 else _FREE for span in range(count))
        return [f"{begin} to {begin + size - 1}", called, self._place(first), self._place(last), over_time]

    def _place(self, node: int) -> str:
        """Return what a node is called, with the number of its line."""
        op = self.kernel.ops[node]
        return self.name(op, -1)
