// RUN: xgpu-opt %s -p turn-ragged-products,func.func(trivial-dce) | FileCheck %s

// Both operands are read as they were before transposes.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[ALL:.*]] = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1], rhs_group_dimensions = [2]>}> : (tensor<4x6xbf16>, tensor<4x8x2xbf16>, tensor<2xi32>) -> tensor<6x8xbf16>
// CHECK-NEXT:    return %[[ALL]]
func.func @main(%x: tensor<4x6xbf16>, %w: tensor<4x8x2xbf16>, %sizes: tensor<2xi32>) -> tensor<6x8xbf16> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xbf16>) -> tensor<6x4xbf16>
  %1 = stablehlo.transpose %w, dims = [2, 1, 0] : (tensor<4x8x2xbf16>) -> tensor<2x8x4xbf16>
  %2 = stablehlo.transpose %1, dims = [0, 2, 1] : (tensor<2x8x4xbf16>) -> tensor<2x4x8xbf16>
  %3 = "chlo.ragged_dot"(%0, %2, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x4xbf16>, tensor<2x4x8xbf16>, tensor<2xi32>) -> tensor<6x8xbf16>
  return %3 : tensor<6x8xbf16>
}
