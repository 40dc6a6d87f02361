"""Scans that several blocks share: one kernel where blocks would be too few, and what they tell each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.errors import KernelFault

from .test_reductions import numbers, run

EMITTERS = {1: "scan_row", 2: "scan_column"}


@pytest.mark.parametrize(
    ("shape", "axis", "is_shared"),
    [
        ((16384, 16384), 1, False),
        ((16384, 16384), 0, False),
        ((2048, 2048), 0, False),
        ((30000,), 0, False),
        ((1 << 16,), 0, True),
        ((1 << 20,), 0, True),
        ((1 << 28,), 0, True),
        ((64, 1 << 16), 1, True),
        ((128, 1 << 16), 1, False),
        ((1 << 21, 8), 0, True),
        ((1 << 30,), 0, True),
    ],
    ids=str,
)
def test_blocks_share_scans_only_where_it_pays(shape, axis, is_shared):
    compiled = xgpu.compile(lambda x: lax.cumsum(x, axis), jax.ShapeDtypeStruct(shape, np.float32))
    (kernel,) = compiled.kernels
    assert kernel.emitter in ("scan_row", "scan_column")
    assert (kernel.scratch_words > 0) == is_shared


def test_blocks_are_as_large_as_there_is_work_for():
    """Large ones exchange fewer messages, and 64 of the smallest keep more of a device busy than fewer."""
    grids = {}
    for power in (16, 18, 19, 20, 24, 28):
        (kernel,) = xgpu.compile(jnp.cumsum, jax.ShapeDtypeStruct((1 << power,), np.float32)).kernels
        grids[power] = kernel.grid[0], kernel.block[0]
    assert grids == {
        16: (16, 256),
        18: (64, 256),
        19: (64, 512),
        20: (64, 512),
        24: (1024, 512),
        28: (16384, 512),
    }


def test_what_is_before_and_after_is_part_of_the_kernel():
    def function(x, y):
        return jnp.sin(jnp.cumsum(x * y)) - y

    compiled = xgpu.compile(function, "f32[100000]", "f32[100000]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["scan_row"]


@pytest.mark.parametrize("dtype", ["s8", "bf16", "f64", "pred"])
@pytest.mark.parametrize("shape", [(40000,), (9001, 4)], ids=str)
def test_messages_of_real_types(dtype, shape):
    """Of less than a word, of one, and of two; the combination is not commutative, and has no identity."""
    x = numbers(f"{dtype}[{','.join(map(str, shape))}]")
    x[7::9] = 0

    def last(a, b):
        return jnp.where(b != 0, b, a)

    (result,) = run(lambda x: lax.associative_scan(last, x), x, emitters={EMITTERS[x.ndim]})
    there = np.maximum.accumulate(np.where(x != 0, np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1)), 0), axis=0)
    np.testing.assert_array_equal(result, np.take_along_axis(x, there, 0))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("shape", [(40000,), (9001, 4)], ids=str)
def test_messages_of_complex_numbers(dtype, shape):
    x = numbers(f"{dtype}[{','.join(map(str, shape))}]")
    (result,) = run(lambda x: lax.cumsum(x), x, emitters={EMITTERS[x.ndim]})
    np.testing.assert_array_equal(result, np.cumsum(x, 0))


@pytest.mark.parametrize(("function", "by_hand"), [(lax.cummax, np.maximum), (lax.cummin, np.minimum)])
def test_not_a_number_reaches_all_blocks_after(function, by_hand):
    x = np.random.default_rng(0).standard_normal(40000).astype(np.float32)
    x[9999] = np.nan
    (result,) = run(lambda x: function(x), x, emitters={"scan_row"})
    np.testing.assert_array_equal(result, by_hand.accumulate(x))


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_keep_their_sign(zero):
    """A message without any bit is a message too."""
    x = np.full(40000, zero, np.float32)
    (result,) = run(lambda x: lax.cummax(x), x, emitters={"scan_row"})
    np.testing.assert_array_equal(result.view(np.uint32), x.view(np.uint32))


def test_the_same_kernel_twice_in_a_program_and_in_loops():
    """Each launch has a board of its own, clear at its start."""
    sums = xgpu.jit(lambda x: lax.cumsum(x) % 7)
    x = numbers("s32[40000]")

    def body(_, x):
        return sums(sums(x))

    result = jax.jit(lambda x: lax.fori_loop(0, 3, body, x))(x)
    for _ in range(6):
        x = np.cumsum(x, dtype=np.int32) % 7
    np.testing.assert_array_equal(result, x)


def test_a_kernel_with_messages_as_text_has_no_board_among_its_arguments():
    direct = xgpu.compile(lambda x: lax.cumsum(x, 0, reverse=True), "s32[40000]")
    (x,) = direct.random_inputs(seed=0)
    for level in ("stablehlo", "fusions", "emitted", "lowered"):
        again = xgpu.compile(direct.ir(level))
        assert [kernel.scratch_words for kernel in again.kernels] == [direct.kernels[0].scratch_words]
        # What a later level knows of an array is its bytes.
        (result,) = again.run(x if level != "lowered" else x.view(np.uint8))
        np.testing.assert_array_equal(result.view(np.int32), np.cumsum(x[::-1], dtype=np.int32)[::-1])


def edited(old, new):
    """Return a scan that three blocks share, with a change of its kernel, and its argument."""
    fixed = {"vector": 1, "lanes": 32, "groups": 1, "steps": 1, "spread": True}
    text = xgpu.compile(sums, "s32[96]", options=xgpu.Options(schedules={"sums_fusion_0": fixed})).ir("emitted")
    assert text.count(old) == 1
    return xgpu.compile(text.replace(old, new)), numbers("s32[96]")


def sums(x):
    return lax.cumsum(x)


def test_a_message_that_no_block_leaves_is_found():
    """Without the checks, threads would wait for ever."""
    compiled, x = edited("(d1 mod 3) mod 32 in [1, 31]", "(d1 mod 3) mod 32 in [2, 31]")
    with pytest.raises(KernelFault) as caught:
        compiled.run(x, sanitize=True)
    (fault,) = caught.value.faults
    assert (fault.kind, fault.block, fault.thread, fault.index) == ("unpublished", (2, 0, 0), (1, 0, 0), 1)
    assert "reads element 1 (byte 8) of output 1, where no block before has left a message" in fault.message


def test_a_message_of_another_kernel_is_found():
    """A place that is none of the board's, too, ends the wait."""
    compiled, x = edited("- ((d1 mod 3 + 31) mod 32) - 1)", "- ((d1 mod 3 + 31) mod 32) + 50)")
    with pytest.raises(KernelFault) as caught:
        compiled.run(x, sanitize=True)
    assert {fault.kind for fault in caught.value.faults} == {"out of bounds"}


def test_packed_elements_that_cannot_be_widened_are_left():
    """The quotient of bytes is not that of numbers of four bits, whose sums wrap around."""
    text = """func.func @main(%x: tensor<3x10xi4>) -> tensor<3x10xi4> {
      %0 = "xgpu.scan"(%x) ({
      ^bb0(%a: tensor<i4>, %b: tensor<i4>):
        %c = stablehlo.add %a, %b : tensor<i4>
        %d = stablehlo.maximum %c, %b : tensor<i4>
        stablehlo.return %d : tensor<i4>
      }) {dimension = 1 : i64, reverse = false} : (tensor<3x10xi4>) -> tensor<3x10xi4>
      %1 = stablehlo.add %0, %x : tensor<3x10xi4>
      return %1 : tensor<3x10xi4>
    }"""
    compiled = xgpu.compile(text)
    assert "xgpu.fallback" in compiled.ir("fusions")
