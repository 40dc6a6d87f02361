// RUN: xgpu-opt %s -p drop-empty-windows | FileCheck %s

// Empty lists mean the defaults.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> tensor<3xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = "stablehlo.reduce_window"(%arg0, %[[A]]) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 1>}> ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<f32>
// CHECK-NEXT:    }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT:    return %[[B]] : tensor<3xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{base_dilations = array<i64>, window_dimensions = array<i64: 2>, window_strides = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
