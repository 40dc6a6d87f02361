// RUN: xgpu-opt %s -p simplify-single-reductions --split-input-file | FileCheck %s

// The sum of one element from zero is the element.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>) -> tensor<8xf32>
// CHECK:         %[[A:.*]] = stablehlo.reshape %arg0 : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[A]] : tensor<8xf32>
func.func @main(%x: tensor<8x1xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Elements are added to another initial value, each by itself.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>, %arg1: tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.reshape %arg0 : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[B]], %[[A]] : tensor<8xf32>
// CHECK-NEXT:    return %[[C]] : tensor<8xf32>
func.func @main(%x: tensor<8x1xf32>, %start: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
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
