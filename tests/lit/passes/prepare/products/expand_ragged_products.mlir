// RUN: xgpu-opt %s -p 'expand-ragged-products{products=all}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'expand-ragged-products{products=kernels}' --split-input-file | FileCheck %s --check-prefix=LEFT

// Operands of f32 that do not lie along the contracted dimension are no kernel's: each group's matrix multiplies all
// rows, of which those of the group are taken.

// CHECK-LABEL: func.func @main
// CHECK:         %[[SIZES:.*]] = stablehlo.convert %arg2 : (tensor<2xi32>) -> tensor<2xi64>
// CHECK:         %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<6x8xf32>
// CHECK:         %[[W:.*]] = stablehlo.slice %arg1 [0:1, 0:4, 0:8]
// CHECK:         %[[FIRST:.*]] = stablehlo.dot_general %arg0,
// CHECK:         %[[ONE:.*]] = stablehlo.select %{{.*}}, %[[FIRST]], %[[ZERO]]
// CHECK:         stablehlo.slice %arg1 [1:2, 0:4, 0:8]
// CHECK:         %[[SECOND:.*]] = stablehlo.dot_general %arg0,
// CHECK:         %[[ALL:.*]] = stablehlo.select %{{.*}}, %[[SECOND]], %[[ONE]]
// CHECK-NEXT:    return %[[ALL]]
// LEFT-LABEL:  func.func @main
// LEFT-NEXT:     %[[ALL:.*]] = "chlo.ragged_dot"(%arg0, %arg1, %arg2)
// LEFT-NEXT:     return %[[ALL]]
func.func @main(%x: tensor<6x4xf32>, %w: tensor<2x4x8xf32>, %sizes: tensor<2xi32>) -> tensor<6x8xf32> {
  %0 = "chlo.ragged_dot"(%x, %w, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x4xf32>, tensor<2x4x8xf32>, tensor<2xi32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}

// -----

// Those of bf16 are.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    "chlo.ragged_dot"
func.func @main(%x: tensor<6x8xbf16>, %w: tensor<2x8x8xbf16>, %sizes: tensor<2xi32>) -> tensor<6x8xbf16> {
  %0 = "chlo.ragged_dot"(%x, %w, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x8xbf16>, tensor<2x8x8xbf16>, tensor<2xi32>) -> tensor<6x8xbf16>
  return %0 : tensor<6x8xbf16>
}
