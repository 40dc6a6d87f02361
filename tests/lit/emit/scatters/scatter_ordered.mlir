// RUN: xgpu compile %s --emit emitted | FileCheck %s

// What a pair becomes depends on both operands, so one thread makes all updates of a column, one after the other: %s0
// runs over the rows.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.aliases = array<i64: 0, 1>
// CHECK-SAME: xgpu.emitter = "scatter_ordered"
// CHECK: "xgpu.loop"
// CHECK: ^bb0(%[[S0:.*]]: index, %[[UPDATE:.*]]: index, %[[COLUMN:.*]]: index, %[[X:.*]]: tensor<100x7xf32>, %[[Y:.*]]: tensor<100x7xi32>)
// CHECK: scf.if
// CHECK: tensor.extract %[[X]]
// CHECK: tensor.extract %[[Y]]
// CHECK: arith.cmpf
// CHECK: tensor.insert %{{.*}} into %[[X]]
// CHECK: tensor.insert %{{.*}} into %[[Y]]
// CHECK: {map = #xgpu.map<(d0, d1)[s0] -> (s0, d0), d0 in [0, 6], d1 in [0, 0], s0 in [0, 11]>}
// CHECK-NOT: atomic_rmw
func.func @main(%x: tensor<100x7xf32>, %i: tensor<100x7xi32>, %rows: tensor<12x1xi32>, %y: tensor<12x7xf32>,
                %j: tensor<12x7xi32>) -> (tensor<100x7xf32>, tensor<100x7xi32>) {
  %0:2 = "stablehlo.scatter"(%x, %i, %rows, %y, %j) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %1 = stablehlo.compare GT, %c, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %c, %a : tensor<i1>, tensor<f32>
    %3 = stablehlo.select %1, %d, %b : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }) : (tensor<100x7xf32>, tensor<100x7xi32>, tensor<12x1xi32>, tensor<12x7xf32>, tensor<12x7xi32>)
      -> (tensor<100x7xf32>, tensor<100x7xi32>)
  return %0#0, %0#1 : tensor<100x7xf32>, tensor<100x7xi32>
}
