"""Constants whose elements are a resource, as large ones are written, are read as any other."""

import numpy as np
import pytest

import xgpu
from xgpu.errors import InvalidInput

# The first four bytes say how the others are aligned.
CASES = {
    "f32": ("tensor<3xf32>", "040000000000803F0000004000004040", [1, 2, 3]),
    "bf16": ("tensor<3xbf16>", "02000000803F00404040", [1, 2, 3]),
    "one element": ("tensor<f32>", "0400000000004040", 3),
    "integers": ("tensor<2x2xi32>", "0400000001000000FFFFFFFF0200000003000000", [[1, -1], [2, 3]]),
    "packed": ("tensor<3xi4>", "01000000010207", [1, 2, 7]),
    "truths": ("tensor<3x3xi1>", "01000000010001000000000001", [[1, 0, 1], [0, 0, 0], [0, 0, 1]]),
    "complex": ("tensor<2xcomplex<f32>>", "040000000000803F000000400000404000008040", [1 + 2j, 3 + 4j]),
    "none": ("tensor<0xf32>", "04000000", []),
}


def _module(type_: str, key: str, resources: str) -> str:
    return f"""
    func.func @main() -> {type_} {{
      %0 = stablehlo.constant dense_resource<{key}> : {type_}
      %1 = stablehlo.reshape %0 : ({type_}) -> {type_}
      return %1 : {type_}
    }}
    {{-#
      dialect_resources: {{ builtin: {{ {resources} }} }}
    #-}}
    """


@pytest.mark.parametrize(("type_", "digits", "expected"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("key", ["weights", '"the weights"', "weights.1_$"])
def test_elements(type_, digits, expected, key):
    compiled = xgpu.compile(_module(type_, key, f'other: "0x0400000001020304", {key}: "0x{digits}"'))
    (result,) = compiled.reference()
    np.testing.assert_array_equal(result.astype(np.complex64), np.asarray(expected, np.complex64))


def test_elements_that_were_left_out():
    with pytest.raises(InvalidInput, match=r"tensor<4xf32> were left out of the text: there is no resource __elided__"):
        xgpu.compile(_module("tensor<4xf32>", "__elided__", ""))


def test_a_resource_of_another_size():
    with pytest.raises(InvalidInput, match=r"weights has 3 bytes; tensor<4xf32> takes 16"):
        xgpu.compile(_module("tensor<4xf32>", "weights", 'weights: "0x04000000000102"'))
