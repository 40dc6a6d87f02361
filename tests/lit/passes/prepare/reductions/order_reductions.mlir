// RUN: xgpu-opt %s -p order-reductions --split-input-file | FileCheck %s

// Rows are summed up, as they lie in memory: the two transposes are no computation.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x512xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.transpose %[[B]], dims = [1, 0] : (tensor<512x64xf32>) -> tensor<64x512xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reduce(%[[C]] init: %[[A]]) applies stablehlo.add across dimensions = [1] : (tensor<64x512xf32>, tensor<f32>) -> tensor<64xf32>
// CHECK-NEXT:    return %[[D]] : tensor<64xf32>
func.func @main(%x: tensor<64x512xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
  %0 = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Columns that lie so in memory.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x64xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reduce(%arg0 init: %[[A]]) applies stablehlo.add across dimensions = [0] : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
// CHECK-NEXT:    return %[[B]] : tensor<64xf32>
func.func @main(%x: tensor<512x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
