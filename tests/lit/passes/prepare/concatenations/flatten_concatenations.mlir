// RUN: xgpu-opt %s -p flatten-concatenations --split-input-file | FileCheck %s

// One concatenation of all arrays.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>, %arg2: tensor<4xf32>) -> tensor<9xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg1, %arg2, dim = 0 : (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<9xf32>
// CHECK-NEXT:    return %[[A]] : tensor<9xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>, %c: tensor<4xf32>) -> tensor<9xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = stablehlo.concatenate %0, %c, dim = 0 : (tensor<5xf32>, tensor<4xf32>) -> tensor<9xf32>
  return %1 : tensor<9xf32>
}

// -----

// Not along another dimension, nor where the inner one is a result itself.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<2x6xf32>) -> (tensor<4x6xf32>, tensor<2x12xf32>, tensor<2x6xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.concatenate %arg1, %arg1, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %[[A]], %arg2, dim = 0 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.concatenate %[[B]], %arg2, dim = 1 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x12xf32>
// CHECK-NEXT:    return %[[C]], %[[D]], %[[B]] : tensor<4x6xf32>, tensor<2x12xf32>, tensor<2x6xf32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<2x6xf32>) -> (tensor<4x6xf32>, tensor<2x12xf32>, tensor<2x6xf32>) {
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %1 = stablehlo.concatenate %b, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %2 = stablehlo.concatenate %0, %c, dim = 0 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  %3 = stablehlo.concatenate %1, %c, dim = 1 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x12xf32>
  return %2, %3, %1 : tensor<4x6xf32>, tensor<2x12xf32>, tensor<2x6xf32>
}

// -----

// Empty arrays are left out, and what is put together of one array is that array.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<0xf32>, %arg2: tensor<4xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg2, dim = 0 : (tensor<2xf32>, tensor<4xf32>) -> tensor<6xf32>
// CHECK-NEXT:    return %[[A]], %arg2, %arg1
func.func @main(%a: tensor<2xf32>, %b: tensor<0xf32>, %c: tensor<4xf32>) -> (tensor<6xf32>, tensor<4xf32>, tensor<0xf32>) {
  %0 = stablehlo.concatenate %a, %b, %c, dim = 0 : (tensor<2xf32>, tensor<0xf32>, tensor<4xf32>) -> tensor<6xf32>
  %1 = stablehlo.concatenate %b, %b, dim = 0 : (tensor<0xf32>, tensor<0xf32>) -> tensor<0xf32>
  %2 = stablehlo.concatenate %1, %c, dim = 0 : (tensor<0xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %2, %1 : tensor<6xf32>, tensor<4xf32>, tensor<0xf32>
}
