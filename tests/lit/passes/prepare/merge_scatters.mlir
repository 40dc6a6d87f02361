// RUN: xgpu-opt %s -p merge-scatters --split-input-file | FileCheck %s

// Sums of scatters to zeros are one, whatever is added first.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xi32>, %arg1: tensor<8xf32>, %arg2: tensor<4x1xi32>, %arg3: tensor<4xf32>)
// CHECK:         %[[ZERO:.*]] = stablehlo.broadcast_in_dim
// CHECK-NEXT:    %[[I:.*]] = stablehlo.concatenate %arg0, %arg2, %arg0, dim = 0 : (tensor<8x1xi32>, tensor<4x1xi32>, tensor<8x1xi32>) -> tensor<20x1xi32>
// CHECK-NEXT:    %[[U:.*]] = stablehlo.concatenate %arg1, %arg3, %arg1, dim = 0 : (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>) -> tensor<20xf32>
// CHECK-NEXT:    %[[S:.*]] = "stablehlo.scatter"(%[[ZERO]], %[[I]], %[[U]]) <{indices_are_sorted = false,
// CHECK:         return %[[S]] : tensor<64xf32>
func.func @main(%i: tensor<8x1xi32>, %u: tensor<8xf32>, %j: tensor<4x1xi32>, %v: tensor<4xf32>) -> tensor<64xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<64xf32>
  %0 = "stablehlo.scatter"(%z, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<64xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<64xf32>
  %1 = "stablehlo.scatter"(%z, %j, %v) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<64xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<64xf32>
  %2 = "stablehlo.scatter"(%z, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %b, %a : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<64xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<64xf32>
  %3 = stablehlo.add %0, %1 : tensor<64xf32>
  %4 = stablehlo.add %3, %2 : tensor<64xf32>
  return %4 : tensor<64xf32>
}

// -----

// Scatters of which one updates what the other did, to any array; updates are counted behind the windows here.

// CHECK-LABEL: func.func @main(
// CHECK-DAG:     %[[I:.*]] = stablehlo.concatenate %arg1, %arg3, dim = 1 : (tensor<1x8xi32>, tensor<1x4xi32>) -> tensor<1x12xi32>
// CHECK-DAG:     %[[U:.*]] = stablehlo.concatenate %arg2, %arg4, dim = 1 : (tensor<3x8xi32>, tensor<3x4xi32>) -> tensor<3x12xi32>
// CHECK:         %[[S:.*]] = "stablehlo.scatter"(%arg0, %[[I]], %[[U]])
// CHECK:         stablehlo.maximum
// CHECK:         return %[[S]]
func.func @main(%x: tensor<3x64xi32>, %i: tensor<1x8xi32>, %u: tensor<3x8xi32>, %j: tensor<1x4xi32>, %v: tensor<3x4xi32>) -> tensor<3x64xi32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 0>, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.maximum %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<3x64xi32>, tensor<1x8xi32>, tensor<3x8xi32>) -> tensor<3x64xi32>
  %1 = "stablehlo.scatter"(%0, %j, %v) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 0>, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.maximum %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<3x64xi32>, tensor<1x4xi32>, tensor<3x4xi32>) -> tensor<3x64xi32>
  return %1 : tensor<3x64xi32>
}

// -----

// What overwrites stays in its order, and so does what another operation reads in between, combines in another way, or
// promises that indices are unique.

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-5: "stablehlo.scatter"
func.func @main(%x: tensor<64xi32>, %i: tensor<8x1xi32>, %u: tensor<8xi32>) -> (tensor<64xi32>, tensor<64xi32>) {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<64xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<64xi32>
  %1 = "stablehlo.scatter"(%0, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<64xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<64xi32>
  %2 = "stablehlo.scatter"(%1, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<64xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<64xi32>
  %3 = "stablehlo.scatter"(%2, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.minimum %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<64xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<64xi32>
  %4 = "stablehlo.scatter"(%3, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.minimum %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<64xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<64xi32>
  return %1, %4 : tensor<64xi32>, tensor<64xi32>
}

// -----

// A loop that adds up scatters to zeros begins with zeros, so that no sum in it is a negative zero: they are scatters to
// the sum. Not to an array that may have negative zeros, such as the argument, nor to one of narrow elements.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.while(%[[SUM:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK-DAG:       %[[I:.*]] = stablehlo.concatenate %arg1, %arg1, dim = 0
// CHECK-DAG:       %[[U:.*]] = stablehlo.concatenate %arg2, %arg2, dim = 0
// CHECK:           %[[S:.*]] = "stablehlo.scatter"(%[[SUM]], %[[I]], %[[U]])
// CHECK:           stablehlo.return %[[S]]
// CHECK:         %[[T:.*]] = stablehlo.add %arg0, %{{.*}} : tensor<64xf32>
// CHECK:         %[[N:.*]] = stablehlo.add %{{.*}} : tensor<64xbf16>
// CHECK:         return %{{.*}}, %[[T]], %[[N]]
func.func @main(%x: tensor<64xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>, %n: tensor<8xbf16>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<64xf32>
  %start = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %loop:2 = stablehlo.while(%sum = %zero, %k = %start) : tensor<64xf32>, tensor<i32> cond {
    %more = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %s1 = "stablehlo.scatter"(%zero, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<64xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<64xf32>
    %t1 = stablehlo.add %sum, %s1 : tensor<64xf32>
    %s2 = "stablehlo.scatter"(%zero, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<64xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<64xf32>
    %t2 = stablehlo.add %s2, %t1 : tensor<64xf32>
    %next = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %t2, %next : tensor<64xf32>, tensor<i32>
  }
  %s3 = "stablehlo.scatter"(%zero, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<64xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<64xf32>
  %t3 = stablehlo.add %x, %s3 : tensor<64xf32>
  %narrow = stablehlo.constant dense<0.0> : tensor<64xbf16>
  %ones = stablehlo.constant dense<1.0> : tensor<64xbf16>
  %s4 = "stablehlo.scatter"(%narrow, %i, %n) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %c = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %c : tensor<bf16>
  }) : (tensor<64xbf16>, tensor<8x1xi32>, tensor<8xbf16>) -> tensor<64xbf16>
  %t4 = stablehlo.add %ones, %s4 : tensor<64xbf16>
  return %loop#0, %t3, %t4 : tensor<64xf32>, tensor<64xf32>, tensor<64xbf16>
}
