// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The elements do not fill the last run: the constraint involves the element of the run.
// CHECK: d0 in [0, 127], d1 in [0, 1953], s0 in [0, 3], d0 * 4 + d1 * 512 + s0 in [0, 999998]>}
func.func @main(%x: tensor<999999xf32>) -> tensor<999999xf32> {
  %0 = stablehlo.negate %x : tensor<999999xf32>
  return %0 : tensor<999999xf32>
}
