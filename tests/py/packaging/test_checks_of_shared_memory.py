"""Nothing is said to be proved of kernels in shared memory that are wrong: each barrier and each store is needed."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu import ir
from xgpu.packaging.checks.proofs import Proof, prove
from xgpu.structure import walk

BARRIER, STORE = "xgpu.sync_threads", "tensor.insert"
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "rows": (lambda x: jax.nn.softmax(x, axis=1), ("f32[64,333]",)),
    "columns": (lambda x: x.sum(0), ("f32[130,70]",)),
    "transpose": (lambda x: x.T, ("f32[96,70]",)),
    "scan": (lambda x: jnp.cumsum(x, axis=1), ("f32[3,700]",)),
    # Blocks of one kernel do not read what those of the other have written at the same place.
    "a launch of two": (lambda x: (x.max(0), x.sum(1)), ("f32[33,65]",)),
    "a launch of two with other threads": (lambda x, y: (x.max(1), y.sum(0)), ("f32[30,4000]", "f32[700,90]")),
}


def without(op: ir.Operation, first: int) -> None:
    """Remove an operation whose results are some of its operands, from ``first`` on, changed."""
    for number, result in enumerate(op.results):
        result.replace_all_uses_with(op.operands[first + number])
    op.erase()


def drop(op: ir.Operation) -> None:
    """Remove a store."""
    without(op, 1)


def shifted(op: ir.Operation) -> None:
    """Let a store be to the next element along the first dimension."""
    index = ir.IndexType.get()
    with ir.InsertionPoint(op), ir.Location.unknown():
        one = ir.Operation.create("arith.constant", [index], [], {"value": ir.IntegerAttr.get(index, 1)}).results[0]
        op.operands[2] = ir.Operation.create("arith.addi", [index], [op.operands[2], one]).results[0]


def proofs_of_wrong_kernels(kernel: Any, name: str, change: Callable[[ir.Operation], None]) -> Iterator[Proof]:
    """Prove a kernel with each operation of a name changed, one after the other."""
    text = str(kernel.module("emitted"))
    for number in range(text.count(f'"{name}"' if name == BARRIER else name)):
        with ir.make_context():
            module = ir.Module.parse(text)
            change(list(walk(module.operation, name))[number])
            yield prove(kernel.name, module, kernel.aliases)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_wrong_is_not_proved(program: str) -> None:
    function, specs = PROGRAMS[program]
    barriers = 0
    for kernel in xgpu.compile(function, *specs).kernels:
        assert prove(kernel.name, kernel.module("emitted"), kernel.aliases).is_complete
        for proof in proofs_of_wrong_kernels(kernel, BARRIER, lambda op: without(op, 0)):
            barriers += 1
            assert proof.races and not (proof.bounds or proof.written)
        assert all(proof.written or proof.unwritten for proof in proofs_of_wrong_kernels(kernel, STORE, drop))
        assert not any(proof.is_complete for proof in proofs_of_wrong_kernels(kernel, STORE, shifted))
    assert barriers


LOOP = """
module attributes {{xgpu.level = "emitted"}} {{
  func.func @kernel(%x: tensor<32xf32>, %out: tensor<32xf32>) -> tensor<32xf32> attributes {{
      xgpu.kernel, xgpu.emitter = "loop", xgpu.inputs = 1 : i64,
      xgpu.block = array<i64: 32, 1, 1>, xgpu.grid = array<i64: 1, 1, 1>}} {{
    %thread = gpu.thread_id x upper_bound 32
    %other = "xgpu.apply_indexing"(%thread) {{map = #xgpu.map<(d0) -> (31 - d0), d0 in [0, 31]>}} : (index) -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %tile = "xgpu.allocate_shared"() : () -> tensor<32xf32>
    %element = tensor.extract %x[%thread] : tensor<32xf32>
    %last:2 = scf.for %i = %c0 to {trips} step %c1 iter_args(%value = %element, %t = %tile)
        -> (f32, tensor<32xf32>) {{
      %filled = tensor.insert %value into %t[%thread] : tensor<32xf32>
      %seen = "xgpu.sync_threads"(%filled) : (tensor<32xf32>) -> tensor<32xf32>
      %next = tensor.extract %seen[%other] : tensor<32xf32>
      {end}
      scf.yield %next, %done : f32, tensor<32xf32>
    }}
    %n = tensor.insert %last#0 into %out[%thread] : tensor<32xf32>
    return %n : tensor<32xf32>
  }}
}}
"""
WAIT = """%done = "xgpu.sync_threads"(%seen) : (tensor<32xf32>) -> tensor<32xf32>"""


def in_a_loop(trips: str = "%c4", end: str = WAIT) -> Proof:
    text = LOOP.format(trips=trips, end=end)
    if end == "":
        text = text.replace("%done", "%seen")
    with ir.make_context():
        return prove("kernel", ir.Module.parse(text), (-1,))


def test_a_loop_whose_iterations_wait_for_each_other() -> None:
    assert in_a_loop().is_complete


def test_an_iteration_that_overwrites_what_others_still_read() -> None:
    (reason,) = in_a_loop(end="").races
    assert reason.startswith("threads may access one element of shared memory with no barrier between")


def test_a_loop_of_unknown_length_has_barriers_that_not_all_may_reach() -> None:
    assert "not all threads may reach a barrier" in in_a_loop(trips="%thread").races
