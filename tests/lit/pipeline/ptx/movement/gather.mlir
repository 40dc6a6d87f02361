// RUN: xgpu compile %s | FileCheck %s

// Rows taken by runtime indices: the index is read once for the run, the row's elements in a vector.
// CHECK-LABEL: .entry fusion_0(
// CHECK: ld.global.nc.b32
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|bra|div|rem}}
// CHECK: st.global.v4.b32
// CHECK: ret;
func.func @main(%table: tensor<1000x1024xf32>, %rows: tensor<1024x1xi32>) -> tensor<1024x1024xf32> {
  %0 = "stablehlo.gather"(%table, %rows) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
      index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1024>
  } : (tensor<1000x1024xf32>, tensor<1024x1xi32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
