// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Only the slice is written, of two arrays at once; each starts where it fits into its array.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.aliases = array<i64: 0, 1>
// CHECK-SAME: xgpu.emitter = "update_slice"
// CHECK: %[[STARTS:.*]]:2 = "xgpu.pure_call"(%arg2, %arg3) {callee = @fusion_0__starts__root}
// CHECK: arith.minsi %{{.*}}, %c96_i32
// CHECK: %[[I:.*]] = arith.index_cast
// CHECK: arith.minsi %{{.*}}, %c46_i32
// CHECK: %[[J:.*]] = arith.index_cast
// CHECK: "xgpu.loop"
// CHECK: ^bb0(%{{.*}}: index, %[[AT:.*]]: index, %[[X:.*]]: tensor<100xf32>, %[[Y:.*]]: tensor<50xf32>)
// CHECK: %[[VALUES:.*]]:2 = "xgpu.pure_call"(%arg2, %arg3, %[[AT]]) {callee = @fusion_0__updates__root}
// CHECK: %[[P:.*]] = "xgpu.apply_indexing"(%[[AT]], %[[I]])
// CHECK: tensor.insert %[[VALUES]]#0 into %[[X]][%[[P]]]
// CHECK: %[[Q:.*]] = "xgpu.apply_indexing"(%[[AT]], %[[J]])
// CHECK: tensor.insert %[[VALUES]]#1 into %[[Y]][%[[Q]]]
func.func @main(%x: tensor<100xf32>, %y: tensor<50xf32>, %part: tensor<4xf32>, %at: tensor<i32>)
    -> (tensor<100xf32>, tensor<50xf32>) {
  %0 = stablehlo.dynamic_update_slice %x, %part, %at : (tensor<100xf32>, tensor<4xf32>, tensor<i32>) -> tensor<100xf32>
  %1 = stablehlo.negate %part : tensor<4xf32>
  %2 = stablehlo.dynamic_update_slice %y, %1, %at : (tensor<50xf32>, tensor<4xf32>, tensor<i32>) -> tensor<50xf32>
  return %0, %2 : tensor<100xf32>, tensor<50xf32>
}
