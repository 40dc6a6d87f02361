// RUN: xgpu-opt %s -p remove-wrappers --split-input-file | FileCheck %s

// A call returns the elements of its tuple; what only says where an array is, is gone.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
// CHECK-NEXT:    %[[A:.*]]:2 = stablehlo.custom_call @f(%arg0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>)
// CHECK-NEXT:    return %[[A]]#0, %[[A]]#1 : tensor<4xf32>, tensor<i32>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %t = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<i32>>
  %0 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<4xf32>
  %1 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<i32>
  %2 = stablehlo.custom_call @Sharding(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<i32>
}

// -----

// A barrier stays in the program and goes in a reduction.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> tensor<f32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.optimization_barrier %arg0 : tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reduce(%[[A]] init: %[[B]]) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    return %[[C]] : tensor<f32>
func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %2 = stablehlo.add %a, %b : tensor<f32>
    %3 = stablehlo.optimization_barrier %2 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }
  return %1 : tensor<f32>
}
