// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A thread computes four consecutive elements; the sizes divide, so no bounds check is needed.
// CHECK: module attributes {xgpu.level = "emitted"}
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<1024x1024xf32>, %arg1: tensor<1024xf32>, %arg2: tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
// CHECK-SAME: xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "loop", xgpu.grid = array<i64: 2048, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel
// CHECK: %[[THREAD:.*]] = gpu.thread_id x upper_bound 128
// CHECK: %[[BLOCK:.*]] = gpu.block_id x upper_bound 2048
// CHECK: "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %arg2)
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[I:[a-z0-9]+]]: index, %[[J:[a-z0-9]+]]: index, %[[OUT:[a-z0-9]+]]: tensor<1024x1024xf32>):
// CHECK-NEXT: %[[V:.*]] = "xgpu.pure_call"(%arg0, %arg1, %[[I]], %[[J]]) {callee = @fusion_0__root}
// CHECK-NEXT: %[[NEW:.*]] = tensor.insert %[[V]] into %[[OUT]][%[[I]], %[[J]]]
// CHECK-NEXT: "xgpu.yield"(%[[NEW]])
// CHECK-NEXT: {map = #xgpu.map<(d0, d1)[s0] -> ({{.*}}), d0 in [0, 127], d1 in [0, 2047], s0 in [0, 3]>}

// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index {xgpu.range = array<i64: 0, 1023>}, %[[J:[a-z0-9]+]]: index {xgpu.range = array<i64: 0, 1023>}) -> f32
// CHECK-DAG: %[[B:.*]] = tensor.extract %arg1[%[[J]]]
// CHECK-DAG: %[[X:.*]] = tensor.extract %arg0[%[[I]], %[[J]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[X]], %[[B]] : f32
// CHECK-NEXT: return %[[SUM]]
func.func @main(%x: tensor<1024x1024xf32>, %b: tensor<1024xf32>) -> tensor<1024x1024xf32> {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.add %x, %0 : tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}
