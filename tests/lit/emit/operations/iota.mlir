// RUN: xgpu compile %s --emit emitted | FileCheck %s

// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[J:[a-z0-9]*]]: index {xgpu.range = array<i64: 0, 6>}) -> f32
// CHECK: %[[N:.*]] = arith.index_castui %[[J]] : index to i32
// CHECK: arith.uitofp %[[N]] : i32 to f32
func.func @main() -> tensor<5x7xf32> {
  %0 = stablehlo.iota dim = 1 : tensor<5x7xf32>
  return %0 : tensor<5x7xf32>
}
