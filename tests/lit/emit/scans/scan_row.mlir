// RUN: xgpu compile %s --emit emitted | FileCheck %s

// 64 threads share a row of 1024 elements, four vectors of four each: what a thread reads is carried by the loops. It
// scans its vectors, lanes exchange what these are combined to, steps follow on each other, and warps exchange theirs.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "scan_row"
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"() : () -> tensor<8xf32>
// CHECK: "xgpu.loop"
// CHECK: %[[ELEMENT:.*]] = "xgpu.pure_call"(%arg0, {{.*}}) {callee = @fusion_0__prologue__root}
// CHECK: "xgpu.pure_call"(%{{.*}}, %{{.*}}) {callee = @fusion_0__combiner}
// CHECK: "xgpu.shuffle"
// CHECK: arith.select
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %[[TILE]])
// CHECK: %[[SYNCED:.*]] = "xgpu.sync_threads"
// CHECK: tensor.extract %[[SYNCED]]
// CHECK-NOT: "xgpu.sync_threads"
// CHECK: "xgpu.loop"
// CHECK: %[[ROOT:.*]] = "xgpu.pure_call"(%arg0, %{{.*}}) {callee = @fusion_0__epilogue__root}
// CHECK: tensor.insert %[[ROOT]]
// CHECK-LABEL: func.func private @fusion_0__prologue__root
// CHECK: arith.mulf
// CHECK-LABEL: func.func private @fusion_0__combiner
// CHECK: arith.addf
// CHECK-LABEL: func.func private @fusion_0__epilogue__root
// CHECK: math.sqrt
func.func @main(%x: tensor<8192x1024xf32>) -> tensor<8192x1024xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<8192x1024xf32>
  %1 = "xgpu.scan"(%0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 1 : i64, reverse = false} : (tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
  %2 = stablehlo.sqrt %1 : tensor<8192x1024xf32>
  return %2 : tensor<8192x1024xf32>
}
