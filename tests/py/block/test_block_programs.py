"""Kernels written on tiles compute what XLA makes of the same text, with no fault that the sanitizer finds."""

import numpy as np
import pytest

import xgpu
from tests.py.block.programs import PROGRAMS, Linear
from xgpu import ir
from xgpu.dialects import attributes
from xgpu.errors import KernelFault
from xgpu.levels.pipeline import LOWER_TILES
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.runtime.compare import compare
from xgpu.structure import walk
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.tools.fuzzing.blocks.text import BlockText

_PASSES = [each.format(target="sm_90a") for each, _ in LOWER_TILES]
"""Those that plan, then lower-tiles, and the one that sets the level."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_xla(name: str) -> None:
    program = xgpu.compile(PROGRAMS[name]())
    arguments = program.random_inputs(1)
    found = program.run(*arguments, sanitize=True)
    for result, wanted in zip(found, program.reference(*arguments), strict=True):
        comparison = compare(result, wanted)
        assert comparison.agrees, str(comparison)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_ptxas_takes_them(target: str) -> None:
    if find_ptxas() is None:
        pytest.skip("ptxas is not installed")
    for name, text in PROGRAMS.items():
        (kernel,) = xgpu.compile(text(), target=target).kernels
        assert assemble(kernel.ptx, target).spill_bytes == 0, name


def test_operands_are_read_by_instructions_where_rows_lie_together() -> None:
    """Of turned operands, too; rows that lie together in no way are read element by element."""
    for turned in (False, True):
        ptx = xgpu.compile(Linear((64, 64, 64), (32, 32, 32), left_turned=turned, right_turned=turned).text()).ir("ptx")
        assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" in ptx
        assert "ldmatrix.sync.aligned.m8n8.x4.shared" in ptx
        assert ("ldmatrix.sync.aligned.m8n8.x4.trans" in ptx) is True
        assert "cp.async.cg.shared.global" in ptx
    odd = xgpu.compile(Linear((35, 37, 39), (15, 13, 11)).text()).ir("ptx")
    assert "mma.sync" in odd
    assert "ldmatrix" not in odd


def test_sums_of_a_product_begin_with_what_steps_carry() -> None:
    """Nothing is added to accumulators but by the product itself."""
    text = xgpu.compile(Linear((64, 64, 64), (32, 32, 32)).text()).ir("emitted")
    body = text[text.index("scf.for") : text.index("scf.yield")]
    assert "xgpu.mma" in body
    assert "arith.addf" not in body


def test_infinities_and_nans_go_through() -> None:
    program = xgpu.compile(PROGRAMS["without steps"]())
    x, row = program.random_inputs(2)
    x[3, 4], x[5, 6], x[7, 8], x[7, 9] = np.nan, np.inf, np.inf, -np.inf
    found = program.run(x, row)
    for result, wanted in zip(found, program.reference(x, row), strict=True):
        np.testing.assert_array_equal(np.isnan(result), np.isnan(wanted))
        assert compare(result, wanted).agrees


def test_what_is_outside_of_an_array_does_not_reach_a_product() -> None:
    """Beyond its end along the contraction there are zeros, whatever the other operand has there."""
    program = xgpu.compile(Linear((20, 24, 21), (32, 32, 16)).text())
    x, w, bias = program.random_inputs(3)
    x[:, -1], w[-1, :] = np.inf, 0.0
    (found,), (wanted,) = program.run(x, w, bias, sanitize=True), program.reference(x, w, bias)
    assert np.isnan(wanted).all()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["attention", "softmax of a product", "product", "product of ragged sizes"])
def test_a_barrier_that_is_left_out_is_found(name: str) -> None:
    """Each of those that are planned, one after the other: they order accesses that these sizes make."""
    text = PROGRAMS[name]()
    _, count = _without_barrier(text, None)
    assert count
    for number in range(count):
        program = xgpu.compile(_without_barrier(text, number)[0])
        with pytest.raises(KernelFault):
            program.run(*program.random_inputs(1), sanitize=True)
    whole = xgpu.compile(_without_barrier(text, None)[0])
    whole.run(*whole.random_inputs(1), sanitize=True)


def _without_barrier(text: str, number: int | None) -> tuple[str, int]:
    """Return a kernel of level ``emitted``, planned but for the barrier of a number; and how many there are."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(module, parse_pipeline(",".join(_PASSES[:-2])))
        met = [op for op in walk(module.operation) if attributes.MEET in op.attributes]
        if number is not None:
            del met[number].attributes[attributes.MEET]
        run(module, parse_pipeline(",".join(_PASSES[-2:])))
        return str(module), len(met)


def test_choices_of_elements_lie_in_one_another() -> None:
    """Elements that are put side by side, of one lane at a time since another choice depends on it."""
    kernel = BlockText([((4, 1), "i8")], [((4, 8), "i8")], (4,), 32)
    x = kernel.tile(0, (kernel.at[0], None), (1, 1), [0], ', xgpu.place = "shared"')
    both = kernel.map("abs", kernel.op("concatenate", [x, x], (2,), "i8", "dimension = 0 : i64"))
    sizes = "edge_padding_low = array<i64: 3>, edge_padding_high = array<i64: 2>, interior_padding = array<i64: 1>"
    padded = kernel.op("pad", [both, kernel.constant("-1", (), "i8")], (8,), "i8", sizes)
    kernel.insert(padded, 0, (kernel.at[0], None), [0])
    (found,) = xgpu.compile(kernel.text()).run(np.array([[-5], [6], [-7], [0]], np.int8), sanitize=True)
    wanted = [[-1, -1, -1, each, -1, each, -1, -1] for each in (5, 6, 7, 0)]
    np.testing.assert_array_equal(found, wanted)
