// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A thread computes all elements of the bytes that it writes, however few there are of them.
// CHECK: d0 in [0, 127], d1 in [0, 3], s0 in [0, 1], d0 * 2 + d1 * 256 + s0 in [0, 998]>}
// CHECK: d0 in [0, 127], d1 in [0, 1], s0 in [0, 3], d0 * 4 + d1 * 512 + s0 in [0, 997]>}
func.func @main(%x: tensor<999xi4>, %y: tensor<998xui2>) -> (tensor<999xi4>, tensor<998xui2>) {
  %0 = stablehlo.negate %x : tensor<999xi4>
  %1 = stablehlo.not %y : tensor<998xui2>
  return %0, %1 : tensor<999xi4>, tensor<998xui2>
}
