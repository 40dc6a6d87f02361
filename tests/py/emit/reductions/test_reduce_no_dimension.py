"""A reduction over no dimension, whose operand is also read outside it."""

import numpy as np

import xgpu

_PROGRAM = """
func.func @main(%x: tensor<4xi32>, %init: tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %sum = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = []
      : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  %same = stablehlo.transpose %x, dims = [0] : (tensor<4xi32>) -> tensor<4xi32>
  return %sum, %same : tensor<4xi32>, tensor<4xi32>
}
"""


def test_reduction_over_no_dimension() -> None:
    x = np.array([3, -1, 4, 1], np.int32)
    total, same = xgpu.compile(_PROGRAM).run(x, np.array(10, np.int32))
    assert total.tolist() == [13, 9, 14, 11]
    assert same.tolist() == x.tolist()
