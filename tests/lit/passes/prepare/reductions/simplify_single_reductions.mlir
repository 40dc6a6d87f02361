// RUN: xgpu-opt %s -p simplify-single-reductions --split-input-file | FileCheck %s

// Elements are added to the initial value, each by itself.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reshape %arg0 : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.add %[[B]], %[[C]] : tensor<8xf32>
// CHECK-NEXT:    return %[[D]] : tensor<8xf32>
func.func @main(%x: tensor<8x1xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// There are two elements to add: a reduction.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x2xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reduce(%arg0 init: %[[A]]) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<8xf32>
func.func @main(%x: tensor<8x2xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
