// RUN: xgpu-opt %s -p 'order-scatters{deterministic=true}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p order-scatters --split-input-file | FileCheck %s --check-prefix=ANY

// A product depends on the order of its factors, and there is no other way to make it.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.multiply
// CHECK:         }) {xgpu.ordered} : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
// ANY-LABEL:   func.func @main
// ANY-NOT:       xgpu.ordered
func.func @main(%x: tensor<8xf32>, %i: tensor<16x1xi32>, %u: tensor<16xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The last update of each place is found by its number; the others are moved out of the array.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<16x1xi32>, %arg2: tensor<16xf32>)
// CHECK-NEXT:    %[[NUMBERS:.*]] = stablehlo.iota dim = 0 : tensor<16xi32>
// CHECK-NEXT:    %[[NONE:.*]] = stablehlo.constant dense<-1> : tensor<8xi32>
// CHECK-NEXT:    %[[LAST:.*]] = "stablehlo.scatter"(%[[NONE]], %arg1, %[[NUMBERS]])
// CHECK:           stablehlo.maximum
// CHECK:         %[[AT:.*]] = "stablehlo.gather"(%[[LAST]], %arg1)
// CHECK-NEXT:    %[[WINS:.*]] = stablehlo.compare EQ, %[[AT]], %[[NUMBERS]]
// CHECK-NEXT:    %[[WIDE:.*]] = stablehlo.broadcast_in_dim %[[WINS]], dims = [0] : (tensor<16xi1>) -> tensor<16x1xi1>
// CHECK-NEXT:    %[[NOWHERE:.*]] = stablehlo.constant dense<-1> : tensor<16x1xi32>
// CHECK-NEXT:    %[[PLACES:.*]] = stablehlo.select %[[WIDE]], %arg1, %[[NOWHERE]]
// CHECK-NEXT:    "stablehlo.scatter"(%arg0, %[[PLACES]], %arg2) {{.*}} unique_indices = true
// ANY-LABEL:   func.func @main
// ANY-NEXT:      "stablehlo.scatter"(%arg0, %arg1, %arg2)
func.func @main(%x: tensor<8xf32>, %i: tensor<16x1xi32>, %u: tensor<16xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    // overwritten
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Floats are added as integers, in units of the largest of them at each place.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<16x1xi32>, %arg2: tensor<16xf32>)
// CHECK-NEXT:    %[[BITS:.*]] = stablehlo.bitcast_convert %arg2 : (tensor<16xf32>) -> tensor<16xi32>
// CHECK:         %[[LARGEST:.*]] = "stablehlo.scatter"(%{{.*}}, %arg1, %{{.*}})
// CHECK:           stablehlo.maximum
// CHECK:         %[[SUMS:.*]] = "stablehlo.scatter"(%{{.*}}, %arg1, %{{.*}})
// CHECK:           stablehlo.add %{{.*}}, %{{.*}} : tensor<i64>
// CHECK-NOT:     stablehlo.scatter
// CHECK-NOT:     xgpu.ordered
// CHECK:         stablehlo.convert %[[SUMS]] : (tensor<8xi64>) -> tensor<8xf64>
// ANY-LABEL:   func.func @main
// ANY-NEXT:      "stablehlo.scatter"(%arg0, %arg1, %arg2)
func.func @main(%x: tensor<8xf32>, %i: tensor<16x1xi32>, %u: tensor<16xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
