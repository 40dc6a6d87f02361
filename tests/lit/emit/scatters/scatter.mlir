// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix FUSION
// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The operand's memory becomes the result's: the kernel updates its output and reads the operand nowhere.
// FUSION: func.func private @fusion_0
// FUSION-SAME: xgpu.aliases = array<i64: 0>, xgpu.emitter = "scatter"
// FUSION: "stablehlo.scatter"(%arg0, %{{.*}}, %{{.*}})
// FUSION: {xgpu.hero}

// A thread makes one update: it finds the row, which must be inside, and combines the two elements.
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<100x7xf32>, %arg1: tensor<12xi32>, %arg2: tensor<12x7xf32>, %arg3: tensor<100x7xf32>)
// CHECK-SAME: xgpu.aliases = array<i64: 0>
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %arg3)
// CHECK: ^bb0(%{{.*}}: index, %[[UPDATE:.*]]: index, %[[COLUMN:.*]]: index, %[[OUT:.*]]: tensor<100x7xf32>)
// CHECK: %[[ROW:.*]] = "xgpu.pure_call"(%arg1, %arg2, %[[UPDATE]], %{{.*}}) {callee = @fusion_0__indices__root}
// CHECK: %[[INSIDE:.*]] = arith.cmpi ule, %[[ROW]], %c99_i32
// CHECK: %[[CLAMPED:.*]] = arith.minui %[[ROW]], %c99_i32
// CHECK: %[[I:.*]] = arith.index_castui %[[CLAMPED]]
// CHECK: scf.if %[[INSIDE]] -> (tensor<100x7xf32>)
// CHECK: %[[Y:.*]] = "xgpu.pure_call"(%arg1, %arg2, %[[UPDATE]], %[[COLUMN]]) {callee = @fusion_0__updates__root}
// CHECK: "xgpu.atomic_rmw"(%[[OUT]], %[[I]], %[[COLUMN]])
// CHECK: ^bb0(%[[OLD:.*]]: f32):
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[Y]]
// CHECK: "xgpu.yield"(%[[NEW]])
// CHECK: else
// CHECK-NEXT: scf.yield %[[OUT]]

// The indices and updates are computed where they are read.
// CHECK-LABEL: func.func private @fusion_0__indices__root
// CHECK: arith.addi
// CHECK-LABEL: func.func private @fusion_0__updates__root
// CHECK: arith.mulf
func.func @main(%x: tensor<100x7xf32>, %rows: tensor<12xi32>, %y: tensor<12x7xf32>) -> tensor<100x7xf32> {
  %0 = stablehlo.add %rows, %rows : tensor<12xi32>
  %1 = stablehlo.reshape %0 : (tensor<12xi32>) -> tensor<12x1xi32>
  %2 = stablehlo.multiply %y, %y : tensor<12x7xf32>
  %3 = "stablehlo.scatter"(%x, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<100x7xf32>, tensor<12x1xi32>, tensor<12x7xf32>) -> tensor<100x7xf32>
  return %3 : tensor<100x7xf32>
}
