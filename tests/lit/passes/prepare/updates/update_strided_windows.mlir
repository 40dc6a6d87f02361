// RUN: xgpu-opt %s -p update-strided-windows --split-input-file | FileCheck %s

// Every second element, from the second one on: a column of two.

// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<4x2xf32>
// CHECK-NEXT:    %[[U:.*]] = stablehlo.reshape %arg1 : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:    %[[N:.*]] = stablehlo.dynamic_update_slice %[[X]], %[[U]], %[[A]], %[[B]] :
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[N]] : (tensor<4x2xf32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[R]]
func.func @main(%x: tensor<8xf32>, %u: tensor<4xf32>) -> tensor<8xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4xi32>
  %two = stablehlo.constant dense<2> : tensor<4xi32>
  %1 = stablehlo.multiply %0, %two : tensor<4xi32>
  %one = stablehlo.constant dense<1> : tensor<4xi32>
  %2 = stablehlo.add %1, %one : tensor<4xi32>
  %i = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
  %3 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// The updates' dimensions are in another order than the places, and a stride does not divide its dimension.

// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0, 0], high = [1, 0], interior = [0, 0]
// CHECK-NEXT:    %[[X:.*]] = stablehlo.reshape %[[P]] : (tensor<6x6xf32>) -> tensor<2x3x3x2xf32>
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %[[U:.*]] = stablehlo.reshape %[[T]] : (tensor<2x3xf32>) -> tensor<2x1x3x1xf32>
// CHECK-NEXT:    %[[O:.*]] = stablehlo.slice %[[X]] [0:2, 1:2, 0:3, 0:1]
// CHECK-NEXT:    %[[S:.*]] = stablehlo.add %[[O]], %[[U]] : tensor<2x1x3x1xf32>
// CHECK:         %[[N:.*]] = stablehlo.dynamic_update_slice %[[X]], %[[S]],
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[N]] : (tensor<2x3x3x2xf32>) -> tensor<6x6xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.slice %[[R]] [0:5, 0:6]
// CHECK-NEXT:    return %[[E]]
func.func @main(%x: tensor<5x6xf32>, %u: tensor<3x2xf32>) -> tensor<5x6xf32> {
  %c = stablehlo.constant dense<[1, 4]> : tensor<2xi32>
  %rows = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xi32>) -> tensor<3x2x1xi32>
  %n = stablehlo.iota dim = 0 : tensor<3x2x1xi32>
  %two = stablehlo.constant dense<2> : tensor<3x2x1xi32>
  %columns = stablehlo.multiply %two, %n : tensor<3x2x1xi32>
  %i = stablehlo.concatenate %rows, %columns, dim = 2 : (tensor<3x2x1xi32>, tensor<3x2x1xi32>) -> tensor<3x2x2xi32>
  %3 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<3x2x2xi32>, tensor<3x2xf32>) -> tensor<5x6xf32>
  return %3 : tensor<5x6xf32>
}

// -----

// Few sectors hold every 64th row: adding to them in place saves the rest.

// CHECK-LABEL: func.func @main
// CHECK:         %[[N:.*]] = "stablehlo.scatter"
// CHECK:         return %[[N]]
func.func @main(%x: tensor<4096x64xf32>, %u: tensor<64x64xf32>) -> tensor<4096x64xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<64xi32>
  %c = stablehlo.constant dense<64> : tensor<64xi32>
  %1 = stablehlo.multiply %0, %c : tensor<64xi32>
  %i = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<64xi32>) -> tensor<64x1xi32>
  %3 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4096x64xf32>, tensor<64x1xi32>, tensor<64x64xf32>) -> tensor<4096x64xf32>
  return %3 : tensor<4096x64xf32>
}

// -----

// Both dimensions of the updates count along one of the array: places may be equal.

// CHECK-LABEL: func.func @main
// CHECK:         %[[N:.*]] = "stablehlo.scatter"
// CHECK:         return %[[N]]
func.func @main(%x: tensor<8xf32>, %u: tensor<2x2xf32>) -> tensor<8xf32> {
  %i = stablehlo.iota dim = 0 : tensor<2x2xi32>
  %3 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xf32>, tensor<2x2xi32>, tensor<2x2xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
