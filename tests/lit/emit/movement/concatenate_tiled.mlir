// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Each block reads whole pieces of its rows into a tile, and writes the tile as it lies.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.emitter = "concatenate_tiled"
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"() : () -> tensor<[[SIZE:[0-9]+]]xf32>
// CHECK: %[[FIRST:[0-9]+]] = "xgpu.loop"({{.*}}, %[[TILE]])
// CHECK: %[[A:.*]] = "xgpu.pure_call"(%arg0, %arg1, {{.*}}) {callee = @fusion_0__operand_0__root}
// CHECK: tensor.insert %[[A]]
// CHECK: %[[SECOND:[0-9]+]] = "xgpu.loop"({{.*}}, %[[FIRST]])
// CHECK: %[[B:.*]] = "xgpu.pure_call"(%arg0, %arg1, {{.*}}) {callee = @fusion_0__operand_1__root}
// CHECK: tensor.insert %[[B]]
// CHECK: %[[FULL:.*]] = "xgpu.sync_threads"(%[[SECOND]])
// CHECK: "xgpu.loop"({{.*}}, %arg2)
// CHECK: %[[X:.*]] = tensor.extract %[[FULL]]
// CHECK: %[[R:.*]] = "xgpu.pure_call"({{.*}}, %[[X]]) {callee = @fusion_0__epilogue__root}
// CHECK: tensor.insert %[[R]]
// CHECK: return
func.func @main(%x: tensor<640x100xf32>, %y: tensor<640x63xf32>) -> tensor<640x163xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<640x100xf32>, tensor<640x63xf32>) -> tensor<640x163xf32>
  %1 = stablehlo.negate %0 : tensor<640x163xf32>
  return %1 : tensor<640x163xf32>
}
