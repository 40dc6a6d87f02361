// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The index is clamped in its own 64-bit type before it becomes an index.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index {{.*}}, %[[J:[a-z0-9]+]]: index
// CHECK: %[[ROW:.*]] = tensor.extract %arg1[%[[I]], %{{.*}}] : tensor<5x1xi64>
// CHECK: %[[LOW:.*]] = arith.maxsi %[[ROW]], %c0
// CHECK: %[[CLAMPED:.*]] = arith.minsi %[[LOW]], %c16
// CHECK: %[[R:.*]] = arith.index_cast %[[CLAMPED]] : i64 to index
// CHECK: tensor.extract %arg0[%[[R]], %[[J]]]
func.func @main(%table: tensor<17x9xf32>, %rows: tensor<5x1xi64>) -> tensor<5x9xf32> {
  %0 = "stablehlo.gather"(%table, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 9>}> : (tensor<17x9xf32>, tensor<5x1xi64>) -> tensor<5x9xf32>
  return %0 : tensor<5x9xf32>
}
