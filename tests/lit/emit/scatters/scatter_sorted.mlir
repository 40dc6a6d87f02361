// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A thread reads eight updates, adds up those with the same place, and writes the sum where the place changes and at
// the end. The loop carries whether there is a sum, its place, and the sum, in f32.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.emitter = "scatter_sorted"
// CHECK: "xgpu.loop"
// CHECK: ^bb0(%{{.*}}: index, %[[FIRST:.*]]: index, %[[ELEMENT:.*]]: index, %[[OPEN:.*]]: i1, %[[PLACE:.*]]: index, %[[SUM:.*]]: f32, %[[OUT:.*]]: tensor<1000xbf16>)
// CHECK-COUNT-8: callee = @fusion_0__updates__root
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[PLACE]], %{{.*}}
// CHECK: %[[ON:.*]] = arith.andi %{{.*}}, %[[SAME]]
// CHECK: %[[OFF:.*]] = arith.xori %[[ON]]
// CHECK: %[[ENDS:.*]] = arith.andi %[[OPEN]], %[[OFF]]
// CHECK: scf.if %[[ENDS]] -> (tensor<1000xbf16>)
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to bf16
// CHECK: "xgpu.atomic_rmw"(%[[OUT]], %[[PLACE]])
// CHECK: arith.addf %{{.*}}, %[[ROUNDED]] : bf16
// CHECK: %[[TOTAL:.*]] = arith.addf %[[SUM]], %[[NEXT:.*]] : f32
// CHECK: arith.select %{{.*}}, %[[TOTAL]], %[[NEXT]] : f32
// CHECK-COUNT-8: xgpu.atomic_rmw
// CHECK-NOT: xgpu.atomic_rmw
// CHECK: return
func.func @main(%x: tensor<1000xbf16>, %rows: tensor<1048576x1xi32>, %y: tensor<1048576xbf16>) -> tensor<1000xbf16> {
  %0 = "stablehlo.scatter"(%x, %rows, %y) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %1 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %1 : tensor<bf16>
  }) : (tensor<1000xbf16>, tensor<1048576x1xi32>, tensor<1048576xbf16>) -> tensor<1000xbf16>
  return %0 : tensor<1000xbf16>
}
