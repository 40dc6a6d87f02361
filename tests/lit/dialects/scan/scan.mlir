// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @sums
// CHECK:         "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%[[BEFORE:.*]]: tensor<f32>, %[[ELEMENT:.*]]: tensor<f32>):
// CHECK-NEXT:      %[[SUM:.*]] = stablehlo.add %[[BEFORE]], %[[ELEMENT]] : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[SUM]] : tensor<f32>
// CHECK-NEXT:    }) {dimension = 1 : i64, reverse = true} : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
func.func @sums(%x: tensor<8x1000xf32>) -> tensor<8x1000xf32> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%before: tensor<f32>, %element: tensor<f32>):
    %sum = stablehlo.add %before, %element : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) {dimension = 1 : i64, reverse = true} : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
  return %0 : tensor<8x1000xf32>
}
