// RUN: xgpu-opt %s -p expand-operations --split-input-file | FileCheck %s

// The size of a dimension is a constant.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<i32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK-NEXT:    return %[[A]] : tensor<i32>
func.func @main(%x: tensor<8xf32>) -> tensor<i32> {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<8xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

// Batch normalisation, in a branch.

// CHECK-LABEL: func.func @main(%arg0: tensor<i1>, %arg1: tensor<2x3xf32>, %arg2: tensor<3xf32>) -> tensor<2x3xf32> {
// CHECK-NEXT:    %[[A:.*]] = "stablehlo.if"(%arg0) ({
// CHECK-NEXT:      %[[B:.*]] = stablehlo.constant dense<1.000000e-03> : tensor<3xf32>
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg2, %[[B]] : tensor<3xf32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.rsqrt %[[C]] : tensor<3xf32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.multiply %arg2, %[[D]] : tensor<3xf32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.multiply %arg2, %[[E]] : tensor<3xf32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.subtract %arg2, %[[F]] : tensor<3xf32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.broadcast_in_dim %[[E]], dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.multiply %arg1, %[[H]] : tensor<2x3xf32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.broadcast_in_dim %[[G]], dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.add %[[I]], %[[J]] : tensor<2x3xf32>
// CHECK-NEXT:      stablehlo.return %[[K]] : tensor<2x3xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %arg1 : tensor<2x3xf32>
// CHECK-NEXT:    }) : (tensor<i1>) -> tensor<2x3xf32>
// CHECK-NEXT:    return %[[A]] : tensor<2x3xf32>
func.func @main(%p: tensor<i1>, %x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 0.001 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    stablehlo.return %1 : tensor<2x3xf32>
  }, {
    stablehlo.return %x : tensor<2x3xf32>
  }) : (tensor<i1>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
