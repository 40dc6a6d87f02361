// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Slices with elements in common: threads walk the value that is sliced, and each slice takes what lies in it.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.emitter = "input_slices", xgpu.grid = array<i64: 8, 1, 1>
// CHECK: (d0, d1)[s0] -> (d0 + d1 * 128), {{.*}} d0 + d1 * 128 in [0, 998]
// CHECK: (d0, d1)[s0] -> (d0 + d1 * 128 - 2), {{.*}} d0 + d1 * 128 in [2, 999]
func.func @main(%x: tensor<1000xf32>) -> (tensor<999xf32>, tensor<998xf32>) {
  %0 = stablehlo.slice %x [0:999] : (tensor<1000xf32>) -> tensor<999xf32>
  %1 = stablehlo.slice %x [2:1000] : (tensor<1000xf32>) -> tensor<998xf32>
  return %0, %1 : tensor<999xf32>, tensor<998xf32>
}
