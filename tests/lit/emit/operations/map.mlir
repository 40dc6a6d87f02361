// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The region is computed at each element. A constant outside the region, merged with equal ones, is one inside too.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-DAG: %[[X:.*]] = tensor.extract %arg0
// CHECK-DAG: %[[Y:.*]] = tensor.extract %arg1
// CHECK: %[[SUM:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: %[[R:.*]] = arith.mulf %[[SUM]], %[[TWO]]
// CHECK: return %[[R]]
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = "stablehlo.map"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.multiply %1, %two : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
