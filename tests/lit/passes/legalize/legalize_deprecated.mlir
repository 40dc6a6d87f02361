// RUN: xgpu-opt %s -p legalize-deprecated | FileCheck %s

// Replaced by what StableHLO has now.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<f32>) {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:    return %[[A]], %[[B]] : tensor<2x4xf32>, tensor<f32>
func.func @main(%x: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<f32>) {
  %0 = "stablehlo.broadcast"(%x) <{broadcast_sizes = array<i64: 2>}> : (tensor<4xf32>) -> tensor<2x4xf32>
  %1 = "stablehlo.dot"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0, %1 : tensor<2x4xf32>, tensor<f32>
}
