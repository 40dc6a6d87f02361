// RUN: xgpu compile %s | FileCheck %s

// Eight updates, and their indices in two vectors, are read before the first is written; one vector is added for each change of the place.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-10: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-8: red.relaxed.gpu.global.add.v4.f32
// CHECK-NOT: {{ld.global|red}}.
// CHECK: ret;
func.func @main(%x: tensor<1000x64xf32>, %rows: tensor<16384x1xi32>, %y: tensor<16384x64xf32>) -> tensor<1000x64xf32> {
  %0 = "stablehlo.scatter"(%x, %rows, %y) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1000x64xf32>, tensor<16384x1xi32>, tensor<16384x64xf32>) -> tensor<1000x64xf32>
  return %0 : tensor<1000x64xf32>
}
