// RUN: xgpu-opt %s -p apply-entry-layouts --split-input-file | FileCheck %s

// A column-major parameter and result are row-major ones transposed.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.negate %[[A]] : tensor<4x2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.transpose %[[B]], dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    return %[[C]] : tensor<2x4xf32>
module attributes {mhlo.xla_entry_computation_parameter_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.xla_entry_computation_result_layout = [dense<[0, 1]> : tensor<2xindex>]} {
  func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = stablehlo.negate %x : tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}

// -----

// Row-major ones stay.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x2xf32>) -> tensor<4x2xf32> {
// CHECK-NEXT:    return %arg0 : tensor<4x2xf32>
module attributes {mhlo.xla_entry_computation_parameter_layouts = [dense<[1, 0]> : tensor<2xindex>]} {
  func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    return %x : tensor<4x2xf32>
  }
}
