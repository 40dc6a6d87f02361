// RUN: xgpu compile %s --emit emitted | FileCheck %s

// No two updates have the same place: the old element is read and the new one written, by the only thread that does.
// An unsigned index of 8 bits cannot be too large for 256 rows, so nothing is tested.
// CHECK-LABEL: func.func @fusion_0(
// CHECK: %[[ROW:.*]] = "xgpu.pure_call"({{.*}}) {callee = @fusion_0__indices__root}
// CHECK-NEXT: %[[I:.*]] = arith.index_castui %[[ROW]] : i8 to index
// CHECK-NEXT: %[[Y:.*]] = "xgpu.pure_call"({{.*}}) {callee = @fusion_0__updates__root}
// CHECK-NEXT: %[[OLD:.*]] = tensor.extract %[[OUT:.*]][%[[I]]]
// CHECK-NEXT: %[[NEW:.*]] = arith.mulf %[[OLD]], %[[Y]]
// CHECK-NEXT: %[[NEXT:.*]] = tensor.insert %[[NEW]] into %[[OUT]][%[[I]]]
// CHECK-NEXT: "xgpu.yield"(%[[NEXT]])
// CHECK-NOT: atomic_rmw
func.func @main(%x: tensor<256xf32>, %rows: tensor<12x1xui8>, %y: tensor<12xf32>) -> tensor<256xf32> {
  %0 = "stablehlo.scatter"(%x, %rows, %y) <{unique_indices = true, scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<256xf32>, tensor<12x1xui8>, tensor<12xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
