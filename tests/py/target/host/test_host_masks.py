"""Masks of sign bits on the host, which LLVM 22.1 erases on processors with AVX-512 though they are read again."""

import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.target.host import linker

# 16 signs as bits: with AVX-512 a mask and its move, which the fold makes one instruction.
_SIGNS = """
define i32 @signs(<16 x i8> %bytes) {
  %negative = icmp slt <16 x i8> %bytes, zeroinitializer
  %bits = bitcast <16 x i1> %negative to i16
  %number = zext i16 %bits to i32
  ret i32 %number
}
"""


@pytest.mark.parametrize("columns", [5, 7, 8, 9])
def test_rows_are_sorted_with_what_belongs_to_them(columns: int) -> None:
    # Kernels whose threads wait, with many comparisons of floats by their bits.
    types = f"f32[17,{columns}]", f"u8[17,{columns}]", f"s8[17,{columns}]"
    program = xgpu.compile(lambda *operands: lax.sort(operands, num_keys=1), *types)
    generator = np.random.default_rng(columns)
    x = generator.normal(size=(17, columns)).astype(np.float32)
    others = generator.integers(0, 9, (17, columns)).astype(np.uint8), generator.integers(-4, 4, (17, columns), np.int8)
    order = np.argsort(x, axis=1, kind="stable")
    for got, operand in zip(program.run(x, *others), (x, *others), strict=True):
        np.testing.assert_array_equal(got, np.take_along_axis(operand, order, 1))


def test_code_with_a_folded_mask_is_made_again_without_such_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    features = linker.llvm.get_host_cpu_features()
    if not (features.get("avx512vl") and features.get("avx512bw")):
        pytest.skip("this processor has no masks of bytes")
    asked = []
    machine = linker.machine
    monkeypatch.setattr(linker, "machine", lambda level, without=(): asked.append(without) or machine(level, without))
    linker._object_code(_SIGNS, 1)
    linker._object_code(_SIGNS.replace("slt <16 x i8>", "eq <16 x i8>"), 1)
    assert asked == [(), ("avx512vl",), ()]
