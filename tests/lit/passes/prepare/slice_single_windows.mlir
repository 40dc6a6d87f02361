// RUN: xgpu-opt %s -p slice-single-windows --split-input-file | FileCheck %s

// A gather of one window, and a dynamic slice, at places that are moved to where they fit.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<2x4xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<2> : tensor<1xi32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.slice %arg0 [0:8, 2:3] : (tensor<8x4xf32>) -> tensor<8x1xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reshape %[[B]] : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.slice %arg0 [6:8, 0:4] : (tensor<8x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    return %[[C]], %[[F]] : tensor<8xf32>, tensor<2x4xf32>
func.func @main(%x: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<2x4xf32>) {
  %i = stablehlo.constant dense<2> : tensor<1xi32>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 8, 1>}> : (tensor<8x4xf32>, tensor<1xi32>) -> tensor<8xf32>
  %j = stablehlo.constant dense<7> : tensor<i32>
  %k = stablehlo.constant dense<-1> : tensor<i32>
  %1 = stablehlo.dynamic_slice %x, %j, %k, sizes = [2, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  return %0, %1 : tensor<8xf32>, tensor<2x4xf32>
}

// -----

// Two windows, and one whose place is known at run time only, stay.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32>, %arg1: tensor<1xi32>) -> (tensor<8x2xf32>, tensor<8xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
// CHECK-NEXT:    %[[B:.*]] = "stablehlo.gather"(%arg0, %[[A]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 8, 1>}> : (tensor<8x4xf32>, tensor<2x1xi32>) -> tensor<8x2xf32>
// CHECK-NEXT:    %[[C:.*]] = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 8, 1>}> : (tensor<8x4xf32>, tensor<1xi32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[B]], %[[C]] : tensor<8x2xf32>, tensor<8xf32>
func.func @main(%x: tensor<8x4xf32>, %i: tensor<1xi32>) -> (tensor<8x2xf32>, tensor<8xf32>) {
  %two = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
  %0 = "stablehlo.gather"(%x, %two) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 8, 1>}> : (tensor<8x4xf32>, tensor<2x1xi32>) -> tensor<8x2xf32>
  %1 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 8, 1>}> : (tensor<8x4xf32>, tensor<1xi32>) -> tensor<8xf32>
  return %0, %1 : tensor<8x2xf32>, tensor<8xf32>
}

// -----

// Windows without indices, of which there is one in each batch: their elements are no slice where the batch is the last
// dimension, as it is the first one of the result.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x0xi32>, %arg2: tensor<4x0xi32>) -> (tensor<3x2xf32>, tensor<4x2xf32>)
// CHECK:         %[[A:.*]] = stablehlo.slice %arg0 [0:3, 0:2] : (tensor<3x4xf32>) -> tensor<3x2xf32>
// CHECK:         %[[B:.*]] = "stablehlo.gather"(%arg0, %{{.*}}) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [1], start_indices_batching_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<3x4xf32>, tensor<4x0xi32>) -> tensor<4x2xf32>
// CHECK-NEXT:    return %[[A]], %[[B]] : tensor<3x2xf32>, tensor<4x2xf32>
func.func @main(%x: tensor<3x4xf32>, %i: tensor<3x0xi32>, %j: tensor<4x0xi32>) -> (tensor<3x2xf32>, tensor<4x2xf32>) {
  %c = stablehlo.constant dense<> : tensor<3x0xi32>
  %0 = "stablehlo.gather"(%x, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2>}> : (tensor<3x4xf32>, tensor<3x0xi32>) -> tensor<3x2xf32>
  %d = stablehlo.constant dense<> : tensor<4x0xi32>
  %1 = "stablehlo.gather"(%x, %d) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [1], start_indices_batching_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1>}> : (tensor<3x4xf32>, tensor<4x0xi32>) -> tensor<4x2xf32>
  return %0, %1 : tensor<3x2xf32>, tensor<4x2xf32>
}
