// RUN: xgpu-opt %s -p fix-sizes | FileCheck %s

// Sizes that are constants are known.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> tensor<2x4xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    return %[[A]] : tensor<2x4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
  %1 = stablehlo.dynamic_broadcast_in_dim %x, %0, dims = [1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
