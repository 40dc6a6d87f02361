// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Threads share columns: what each has of its rows goes into a tile, and each combines what row lanes before have.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "scan_column"
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"()
// The loop over tiles carries what all before are combined to.
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %arg1, %{{.*}}, %[[TILE]])
// CHECK: "xgpu.pure_call"(%arg0, {{.*}}) {callee = @fusion_0__prologue__root}
// CHECK: "xgpu.pure_call"(%{{.*}}, %{{.*}}) {callee = @fusion_0__combiner}
// CHECK: %[[SYNCED:.*]] = "xgpu.sync_threads"
// CHECK: tensor.extract %[[SYNCED]]
// CHECK: "xgpu.sync_threads"(%[[SYNCED]])
// CHECK-NOT: "xgpu.shuffle"
// CHECK: callee = @fusion_0__epilogue__root
func.func @main(%x: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = true} : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %0 : tensor<2048x2048xf32>
}
