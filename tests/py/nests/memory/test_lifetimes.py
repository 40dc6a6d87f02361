"""Buffers that share memory are never in use at once: blocks are gone through, statement by statement."""

import pytest

from tests.py.effort import by_level, drawn
from tests.py.nests.memory.drawn_buffers import draw
from xgpu import ir
from xgpu.dialects.nests.loops import BarrierOp, LaunchOp, NewOp, WhereOp
from xgpu.levels.pipeline import MAP_LOOPS
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse
from xgpu.nests.lifetimes import bytes_of, shared_buffers
from xgpu.nests.structure import ACCESSES, PAR, SEQ, accesses_in, band_at, launches_of, operations_of
from xgpu.passes.framework import manager
from xgpu.passes.framework.registry import parse_pipeline


class Block:
    """A block that runs: after how many barriers its buffers were accessed last, and which lost what they held."""

    def __init__(self, launch: LaunchOp, number: int):
        placed = [new for new in shared_buffers(launch) if new.offset is not None]
        spans = {new.buffer: range(new.offset or 0, (new.offset or 0) + bytes_of(new)) for new in placed}
        self.beside = {
            one: [
                other
                for other in spans
                if other != one and max(mine.start, spans[other].start) < min(mine.stop, spans[other].stop)
            ]
            for one, mine in spans.items()
        }
        self._number, self._barriers = number, 0
        self._last: dict[ir.Value, int] = {}
        self._lost: set[ir.Value] = set()
        self._known: dict[ir.Value, int] = {}
        self._run(launch.body)

    def _run(self, block: ir.Block) -> None:
        for op in operations_of(block):
            view = op.opview
            if op.name == BarrierOp.OPERATION_NAME:
                self._barriers += view.scope == "block"
            elif op.name == NewOp.OPERATION_NAME:
                self._lost.discard(view.buffer)
            elif op.name == SEQ:
                for iteration in range(view.extent):
                    self._known[view.variable] = iteration
                    self._run(view.body)
            elif op.name == WhereOp.OPERATION_NAME:
                holds = view.map.contains([self._known[variable] for variable in view.variables])
                self._run(view.then if holds else view.otherwise)
            elif op.name == PAR and view.band == "block":
                for loop in band_at(op):
                    self._known[loop.variable] = min(self._number, loop.extent - 1)
                self._run(band_at(op)[-1].body)
            elif op.name == PAR or op.name in ACCESSES:
                self._access(op)

    def _access(self, op: ir.Operation) -> None:
        accesses = [access for access in accesses_in(op) if access.buffer in self.beside]
        for access in accesses:
            assert all(self._last.get(other) != self._barriers for other in self.beside[access.buffer]), op
            assert not (access.reads and access.buffer in self._lost), op
        for access in accesses:
            self._last[access.buffer] = self._barriers
            if access.writes:
                self._lost.update(self.beside[access.buffer])
                self._lost.discard(access.buffer)


def mapped(text: str) -> ir.Module:
    """Return a program at level ``mapped``."""
    module = build(parse(text, "drawn.te")).module
    with module.context:
        manager.run(module, parse_pipeline(",".join(name for name, _ in MAP_LOOPS).format(target="sm_90a")))
    return module


@pytest.mark.parametrize("seed", drawn(range(1000), by_level(10, 50, 1000)))
def test_buffers_that_share_memory(seed: int) -> None:
    text = draw(seed).replace(" #block_barrier", "")
    module = mapped(text)
    with module.context:
        for launch in launches_of(module):
            for number in range(3):
                Block(launch, number)


def test_some_share_memory() -> None:
    assert sum("offset = " in str(mapped(draw(seed))) for seed in range(10)) >= 3
