// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A block begins a tile of all places with the identity, which leaves -0 as it is, updates it by its share of the
// updates, and then updates the operand by the tile.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.block = array<i64: 512, 1, 1>, xgpu.emitter = "scatter_shared", xgpu.grid = array<i64: 146, 1, 1>
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"() : () -> tensor<50xf32>
// CHECK: %[[EMPTY:.*]] = "xgpu.loop"(%{{.*}}, %{{.*}}, %[[TILE]])
// CHECK: %[[ZERO:.*]] = arith.constant -0.000000e+00 : f32
// CHECK: tensor.insert %[[ZERO]]
// CHECK: %[[BEGUN:.*]] = "xgpu.sync_threads"(%[[EMPTY]])
// CHECK: %[[FULL:.*]] = "xgpu.loop"(%{{.*}}, %{{.*}}, %[[BEGUN]])
// CHECK: callee = @fusion_0__indices__root
// CHECK: callee = @fusion_0__updates__root
// CHECK: "xgpu.atomic_rmw"(%{{.*}}) ({
// CHECK: tensor<50xf32>, index) -> tensor<50xf32>
// CHECK: s0 in [0, 1], s1 in [0, 3]
// CHECK: %[[DONE:.*]] = "xgpu.sync_threads"(%[[FULL]])
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %arg3)
// CHECK: %[[SUM:.*]] = tensor.extract %[[DONE]]
// CHECK: "xgpu.atomic_rmw"
// CHECK: arith.addf %{{.*}}, %[[SUM]] : f32
func.func @main(%x: tensor<50xf32>, %rows: tensor<300000x1xi32>, %y: tensor<300000xf32>) -> tensor<50xf32> {
  %0 = "stablehlo.scatter"(%x, %rows, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<50xf32>, tensor<300000x1xi32>, tensor<300000xf32>) -> tensor<50xf32>
  return %0 : tensor<50xf32>
}
