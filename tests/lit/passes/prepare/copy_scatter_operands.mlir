// RUN: xgpu-opt %s -p copy-scatter-operands --split-input-file | FileCheck %s

// What fills the array is made again, as it is read elsewhere.

// CHECK-LABEL: func.func @main(%arg0: tensor<16x1xi32>, %arg1: tensor<16xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = "stablehlo.scatter"(%[[B]], %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
// CHECK-NEXT:    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:      %[[D:.*]] = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<f32>
// CHECK-NEXT:    }) : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[C]], %[[A]] : tensor<8xf32>
// CHECK-NEXT:    return %[[E]] : tensor<8xf32>
func.func @main(%i: tensor<16x1xi32>, %u: tensor<16xf32>) -> tensor<8xf32> {
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %0 = "stablehlo.scatter"(%zeros, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
  %1 = stablehlo.add %0, %zeros : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// An array that is two operands is updated in two memories.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<16x1xi32>, %arg2: tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]]:2 = "stablehlo.scatter"(%[[A]], %arg0, %arg1, %arg2, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
// CHECK-NEXT:    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<f32>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg3, %arg5 : tensor<f32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.maximum %arg4, %arg6 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]], %[[D]] : tensor<f32>, tensor<f32>
// CHECK-NEXT:    }) : (tensor<8xf32>, tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT:    return %[[B]]#0, %[[B]]#1 : tensor<8xf32>, tensor<8xf32>
func.func @main(%x: tensor<8xf32>, %i: tensor<16x1xi32>, %u: tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = "stablehlo.scatter"(%x, %x, %i, %u, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.maximum %b, %d : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) : (tensor<8xf32>, tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
