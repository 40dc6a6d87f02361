// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Eight warps share a row. For each reduction they exchange what they have through a tile of its own, behind a barrier,
// after which all of them have the whole: the lanes of every warp take one of the eight and exchange again.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "rows", xgpu.grid = array<i64: 16384, 1, 1>
// CHECK-COUNT-5: "xgpu.shuffle_reduce"
// CHECK: %[[FIRST:.*]] = "xgpu.allocate_shared"() : () -> tensor<8xf32>
// CHECK: %[[FILLED:.*]] = "xgpu.loop"(%[[THREAD:.*]], %[[BLOCK:.*]], %[[FIRST]])
// CHECK: %[[SYNCED:.*]] = "xgpu.sync_threads"(%[[FILLED]])
// CHECK: %[[TAKEN:.*]] = tensor.extract %[[SYNCED]]
// CHECK: "xgpu.shuffle_reduce"(%[[TAKEN]]) {combiner = @fusion_0__combiner, distance = 1 : i64}
// CHECK: distance = 2 : i64
// CHECK: %[[MAX:.*]] = "xgpu.shuffle_reduce"({{.*}}) {combiner = @fusion_0__combiner, distance = 4 : i64}
// CHECK-NEXT: callee = @fusion_0__initial_1__root
// CHECK: %[[MAX]]) {callee = @fusion_0__prologue_1__root}
// CHECK-COUNT-5: combiner = @fusion_0__combiner_1
// CHECK: %[[SECOND:.*]] = "xgpu.allocate_shared"() : () -> tensor<8xf32>
// CHECK: %[[FILLED_AGAIN:.*]] = "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %[[SECOND]])
// CHECK: "xgpu.sync_threads"(%[[FILLED_AGAIN]])
// CHECK: %[[SUM:.*]] = "xgpu.shuffle_reduce"({{.*}}) {combiner = @fusion_0__combiner_1, distance = 4 : i64}
// CHECK-NOT: xgpu.sync_threads
// CHECK: %[[MAX]], %[[SUM]]) {callee = @fusion_0__prologue_2__root}
// CHECK-NOT: xgpu.sync_threads
// CHECK: return
func.func @main(%x: tensor<16384x4096xf32>) -> tensor<16384x4096xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<16384x4096xf32>, tensor<f32>) -> tensor<16384xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<16384xf32>) -> tensor<16384x4096xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<16384x4096xf32>
  %3 = stablehlo.exponential %2 : tensor<16384x4096xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16384x4096xf32>, tensor<f32>) -> tensor<16384xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<16384xf32>) -> tensor<16384x4096xf32>
  %6 = stablehlo.divide %3, %5 : tensor<16384x4096xf32>
  return %6 : tensor<16384x4096xf32>
}
