"""Split scans: three kernels where blocks would be too few, and fallbacks to XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


@pytest.mark.parametrize(
    ("shape", "axis", "kernels"),
    [
        ((16384, 16384), 1, 1),
        ((16384, 16384), 0, 1),
        ((2048, 2048), 0, 1),
        ((30000,), 0, 1),
        ((1 << 16,), 0, 3),
        ((1 << 20,), 0, 3),
        ((1 << 28,), 0, 3),
        ((64, 1 << 16), 1, 3),
        ((128, 1 << 16), 1, 1),
        ((1 << 21, 8), 0, 3),
        ((1 << 30,), 0, 3),
    ],
    ids=str,
)
def test_three_kernels_only_where_it_pays(shape, axis, kernels):
    compiled = xgpu.compile(lambda x: lax.cumsum(x, axis), jax.ShapeDtypeStruct(shape, np.float32))
    assert len(compiled.kernels) == kernels
    assert compiled.kernels[-1].emitter in ("scan_row", "scan_column")


def test_the_last_chunks_are_all_in_flight():
    """Enough blocks, of chunks that end together, and few enough to be scanned by one."""
    compiled = xgpu.compile(jnp.cumsum, jax.ShapeDtypeStruct((1 << 28,), np.float32))
    reduce, middle, last = compiled.kernels
    assert (reduce.emitter, middle.emitter) == ("reduce_row", "scan_row")
    assert middle.grid == (1, 1, 1)
    assert last.grid[0] == 4096


def test_what_is_before_and_after_is_part_of_the_kernels():
    def function(x, y):
        return jnp.sin(jnp.cumsum(x * y)) - y

    compiled = xgpu.compile(function, "f32[100000]", "f32[100000]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["reduce_row", "scan_row", "scan_row"]


def test_packed_elements_that_cannot_be_widened_are_left():
    """The quotient of bytes is not that of numbers of four bits, whose sums wrap around."""
    text = """func.func @main(%x: tensor<3x10xi4>) -> tensor<3x10xi4> {
      %0 = "xgpu.scan"(%x) ({
      ^bb0(%a: tensor<i4>, %b: tensor<i4>):
        %c = stablehlo.add %a, %b : tensor<i4>
        %d = stablehlo.maximum %c, %b : tensor<i4>
        stablehlo.return %d : tensor<i4>
      }) {dimension = 1 : i64, reverse = false, chunk = 10 : i64} : (tensor<3x10xi4>) -> tensor<3x10xi4>
      %1 = stablehlo.add %0, %x : tensor<3x10xi4>
      return %1 : tensor<3x10xi4>
    }"""
    compiled = xgpu.compile(text)
    assert "xgpu.left" in compiled.ir("fusions")


@pytest.mark.parametrize("level", ["stablehlo", "fusions"])
def test_compilation_goes_on_from_text(level):
    direct = xgpu.compile(lambda x: lax.cumsum(x, 0, reverse=True), "s32[40000]")
    x = direct.random_inputs(seed=0)
    again = xgpu.compile(direct.ir(level))
    assert [kernel.grid for kernel in again.kernels] == [kernel.grid for kernel in direct.kernels]
    np.testing.assert_array_equal(again.run(*x)[0], np.cumsum(x[0][::-1], dtype=np.int32)[::-1])
