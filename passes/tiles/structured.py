"""Loops and conditions of `scf` for code that threads run one after the other, written in the order they run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from xgpu import ir
from xgpu.dialects.attributes import UNROLL
from xgpu.passes.support.scf_ops import create_for
from xgpu.records import dataclass

Values = list[ir.Value]


@dataclass
class WrittenLoop:
    """A loop being written: its counter, and what it carries; ``carried`` is assigned to before the body ends."""

    counter: ir.Value
    carried: Values
    results: Values = field(default_factory=list)


@contextmanager
def counted(lower: ir.Value, upper: ir.Value, step: ir.Value, inits: Sequence[ir.Value]) -> Iterator[WrittenLoop]:
    """Write ``scf.for``, which stays a loop; the body assigns to ``carried``, and the results are known afterwards."""
    op, block = create_for(lower, upper, step, inits)
    op.attributes[UNROLL] = ir.StringAttr.get("none")
    loop = WrittenLoop(block.arguments[0], [*list(block.arguments)[1:]])
    with ir.InsertionPoint(block):
        yield loop
        ir.scf.yield_(loop.carried)
    loop.results = list(op.results)


@contextmanager
def once(counter: ir.Value, inits: Sequence[ir.Value]) -> Iterator[WrittenLoop]:
    """Write what would be the body of a loop with one iteration, whose counter is given."""
    loop = WrittenLoop(counter, list(inits))
    yield loop
    loop.results = loop.carried


@contextmanager
def only_if(condition: ir.Value) -> Iterator[None]:
    """Write what is done only where a condition holds, which makes no values."""
    op = ir.Operation.create("scf.if", operands=[condition], regions=2)
    block = op.regions[0].blocks.append()
    with ir.InsertionPoint(block):
        yield
        ir.scf.yield_([])
