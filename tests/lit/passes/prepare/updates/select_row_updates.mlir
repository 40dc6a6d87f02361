// RUN: xgpu-opt %s -p select-row-updates --split-input-file | FileCheck %s

// Each element compares its class with the label of its row.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1x1xi32>, %arg1: tensor<8x1xf32>) -> tensor<8x5xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [] : (tensor<f32>) -> tensor<8x5xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reshape %arg0 : (tensor<8x1x1xi32>) -> tensor<8x1xi32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %[[C]] : (tensor<8x1xi32>) -> tensor<8xi32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.broadcast_in_dim %[[D]], dims = [0] : (tensor<8xi32>) -> tensor<8x5xi32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.iota dim = 1 : tensor<8x5xi32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.compare EQ, %[[F]], %[[E]] : (tensor<8x5xi32>, tensor<8x5xi32>) -> tensor<8x5xi1>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.reshape %arg1 : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.broadcast_in_dim %[[H]], dims = [0] : (tensor<8xf32>) -> tensor<8x5xf32>
// CHECK-NEXT:    %[[J:.*]] = stablehlo.add %[[B]], %[[I]] : tensor<8x5xf32>
// CHECK-NEXT:    %[[K:.*]] = stablehlo.select %[[G]], %[[J]], %[[B]] : tensor<8x5xi1>, tensor<8x5xf32>
// CHECK-NEXT:    return %[[K]] : tensor<8x5xf32>
func.func @main(%labels: tensor<8x1x1xi32>, %u: tensor<8x1xf32>) -> tensor<8x5xf32> {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x5xf32>
  %0 = "stablehlo.scatter"(%zeros, %labels, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8x5xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}

// -----

// Rows are counted by one of two components; a window is as long as its dimension; narrow indices are widened.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xi8>, %arg1: tensor<8x3xf32>) -> tensor<8x5x3xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [] : (tensor<f32>) -> tensor<8x5x3xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.iota dim = 0 : tensor<8xi8>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<0> : tensor<8xi8>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.constant dense<8> : tensor<8xi8>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.compare LT, %[[C]], %[[D]], SIGNED : (tensor<8xi8>, tensor<8xi8>) -> tensor<8xi1>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.add %[[C]], %[[E]] : tensor<8xi8>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.select %[[F]], %[[G]], %[[C]] : tensor<8xi1>, tensor<8xi8>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.reshape %[[H]] : (tensor<8xi8>) -> tensor<8x1xi8>
// CHECK-NEXT:    %[[J:.*]] = stablehlo.reshape %arg0 : (tensor<8xi8>) -> tensor<8x1xi8>
// CHECK-NEXT:    %[[K:.*]] = stablehlo.concatenate %[[I]], %[[J]], dim = 1 : (tensor<8x1xi8>, tensor<8x1xi8>) -> tensor<8x2xi8>
// CHECK-NEXT:    %[[L:.*]] = stablehlo.reshape %[[J]] : (tensor<8x1xi8>) -> tensor<8xi8>
// CHECK-NEXT:    %[[M:.*]] = stablehlo.convert %[[L]] : (tensor<8xi8>) -> tensor<8xi32>
// CHECK-NEXT:    %[[N:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [0] : (tensor<8xi32>) -> tensor<8x5x3xi32>
// CHECK-NEXT:    %[[O:.*]] = stablehlo.iota dim = 1 : tensor<8x5x3xi32>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.compare EQ, %[[O]], %[[N]] : (tensor<8x5x3xi32>, tensor<8x5x3xi32>) -> tensor<8x5x3xi1>
// CHECK-NEXT:    %[[Q:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<8x3xf32>) -> tensor<8x5x3xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.select %[[P]], %[[Q]], %[[B]] : tensor<8x5x3xi1>, tensor<8x5x3xf32>
// CHECK-NEXT:    return %[[R]] : tensor<8x5x3xf32>
func.func @main(%i: tensor<8xi8>, %u: tensor<8x3xf32>) -> tensor<8x5x3xf32> {
  %one = stablehlo.constant dense<1.000000e+00> : tensor<f32>
  %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8x5x3xf32>
  %count = stablehlo.iota dim = 0 : tensor<8xi8>
  %zero = stablehlo.constant dense<0> : tensor<8xi8>
  %length = stablehlo.constant dense<8> : tensor<8xi8>
  %less = stablehlo.compare LT, %count, %zero, SIGNED : (tensor<8xi8>, tensor<8xi8>) -> tensor<8xi1>
  %sum = stablehlo.add %count, %length : tensor<8xi8>
  %rows = stablehlo.select %less, %sum, %count : tensor<8xi1>, tensor<8xi8>
  %first = stablehlo.reshape %rows : (tensor<8xi8>) -> tensor<8x1xi8>
  %second = stablehlo.reshape %i : (tensor<8xi8>) -> tensor<8x1xi8>
  %both = stablehlo.concatenate %first, %second, dim = 1 : (tensor<8x1xi8>, tensor<8x1xi8>) -> tensor<8x2xi8>
  %0 = "stablehlo.scatter"(%ones, %both, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x5x3xf32>, tensor<8x2xi8>, tensor<8x3xf32>) -> tensor<8x5x3xf32>
  return %0 : tensor<8x5x3xf32>
}

// -----

// Nothing says that no two updates have the same place.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xi32>, %arg1: tensor<8xf32>) -> tensor<5xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<5xf32>
// CHECK-NEXT:    %[[B:.*]] = "stablehlo.scatter"(%[[A]], %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
// CHECK-NEXT:    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<f32>
// CHECK-NEXT:    }) : (tensor<5xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<5xf32>
// CHECK-NEXT:    return %[[B]] : tensor<5xf32>
func.func @main(%i: tensor<8x1xi32>, %u: tensor<8xf32>) -> tensor<5xf32> {
  %zeros = stablehlo.constant dense<0.000000e+00> : tensor<5xf32>
  %0 = "stablehlo.scatter"(%zeros, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<5xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// A large array is in memory: one number of each row is updated there.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x50000xf32>, %arg1: tensor<8x1x1xi32>, %arg2: tensor<8x1xf32>) -> tensor<8x50000xf32>
// CHECK-NEXT:    %[[A:.*]] = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
// CHECK-NEXT:    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT:      %[[B:.*]] = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<f32>
// CHECK-NEXT:    }) : (tensor<8x50000xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x50000xf32>
// CHECK-NEXT:    return %[[A]] : tensor<8x50000xf32>
func.func @main(%x: tensor<8x50000xf32>, %labels: tensor<8x1x1xi32>, %u: tensor<8x1xf32>) -> tensor<8x50000xf32> {
  %0 = "stablehlo.scatter"(%x, %labels, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8x50000xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x50000xf32>
  return %0 : tensor<8x50000xf32>
}

// -----

// A small array is moved in less time than a launch takes.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x5xf32>, %arg1: tensor<8x1x1xi32>, %arg2: tensor<8x1xf32>) -> tensor<8x5xf32>
// CHECK-NOT:     stablehlo.scatter
// CHECK:         %[[SUM:.*]] = stablehlo.add %arg0, %{{.*}} : tensor<8x5xf32>
// CHECK-NEXT:    %[[NEW:.*]] = stablehlo.select %{{.*}}, %[[SUM]], %arg0 : tensor<8x5xi1>, tensor<8x5xf32>
// CHECK-NEXT:    return %[[NEW]] : tensor<8x5xf32>
func.func @main(%x: tensor<8x5xf32>, %labels: tensor<8x1x1xi32>, %u: tensor<8x1xf32>) -> tensor<8x5xf32> {
  %0 = "stablehlo.scatter"(%x, %labels, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8x5xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}
