// RUN: xgpu-opt %s -p legalize-chlo --split-input-file | FileCheck %s

// Functions that kernels compute stay; those of complex numbers are StableHLO.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xcomplex<f32>>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xcomplex<f32>>) {
// CHECK-NEXT:    %[[A:.*]] = chlo.erfc %arg0 : tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = chlo.erf_inv %arg0 : tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.tan %arg1 : tensor<4xcomplex<f32>>
// CHECK-NEXT:    return %[[A]], %[[B]], %[[C]] : tensor<4xf32>, tensor<4xf32>, tensor<4xcomplex<f32>>
func.func @main(%x: tensor<4xf32>, %z: tensor<4xcomplex<f32>>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xcomplex<f32>>) {
  %0 = chlo.erfc %x : tensor<4xf32> -> tensor<4xf32>
  %1 = stablehlo.custom_call @chlo.erf_inv(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = chlo.tan %z : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xcomplex<f32>>
}

// -----

// A composite is a call of what it is made of.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %[[A:.*]] = call @f(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return %[[A]] : tensor<4xf32>
// CHECK-LABEL: func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    return %arg0 : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "my.op" %x {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Products of rows in groups stay.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[A:.*]] = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x4xcomplex<f32>>, tensor<2x4x8xcomplex<f32>>, tensor<2xi32>) -> tensor<6x8xcomplex<f32>>
// CHECK-NEXT:    return %[[A]]
func.func @main(%x: tensor<6x4xcomplex<f32>>, %w: tensor<2x4x8xcomplex<f32>>, %sizes: tensor<2xi32>) -> tensor<6x8xcomplex<f32>> {
  %0 = "chlo.ragged_dot"(%x, %w, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x4xcomplex<f32>>, tensor<2x4x8xcomplex<f32>>, tensor<2xi32>) -> tensor<6x8xcomplex<f32>>
  return %0 : tensor<6x8xcomplex<f32>>
}
