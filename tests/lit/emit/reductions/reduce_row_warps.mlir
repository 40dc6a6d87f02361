// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Eight warps share a row: each puts what it has into the tile, and then the lanes of every warp take one of the eight.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.block = array<i64: 256, 1, 1>
// CHECK-COUNT-5: "xgpu.shuffle_reduce"
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"() : () -> tensor<8xf32>
// CHECK: %[[FILLED:.*]] = "xgpu.loop"(%[[THREAD:.*]], %[[BLOCK:.*]], %[[TILE]])
// CHECK: tensor.insert
// CHECK: (d0, d1) -> (d0 floordiv 32), {{.*}}d0 mod 32 in [0, 0]
// CHECK: %[[SYNCED:.*]] = "xgpu.sync_threads"(%[[FILLED]])
// CHECK: %[[WARP:.*]] = "xgpu.apply_indexing"(%[[THREAD]], %[[BLOCK]]) {map = #xgpu.map<(d0, d1) -> (d0 mod 8)
// CHECK: %[[TAKEN:.*]] = tensor.extract %[[SYNCED]][%[[WARP]]]
// CHECK: "xgpu.shuffle_reduce"(%[[TAKEN]]) {combiner = @fusion_0__combiner, distance = 1 : i64}
// CHECK: distance = 2 : i64
// CHECK: distance = 4 : i64
// CHECK-NOT: "xgpu.shuffle_reduce"
func.func @main(%x: tensor<16384x16384xf32>) -> tensor<16384xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16384x16384xf32>, tensor<f32>) -> tensor<16384xf32>
  return %0 : tensor<16384xf32>
}
