// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A thread has an accumulator for each of its four columns. The first of those carried is the one of the step's column
// and goes to the end. Lanes of a warp are over eight vectors of columns and four rows.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.block = array<i64: 512, 1, 1>, xgpu.emitter = "reduce_column", xgpu.grid = array<i64: 512, 1, 1>
// CHECK: %[[SUMS:.*]]:4 = "xgpu.loop"
// CHECK: "xgpu.loop"
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[ROW:[a-z0-9]+]]: index, %[[COLUMN:[a-z0-9]+]]: index, %[[A:[a-z0-9]+]]: f32, %[[B:[a-z0-9]+]]: f32, %[[C:[a-z0-9]+]]: f32, %[[D:[a-z0-9]+]]: f32):
// CHECK-NEXT: %[[X:.*]] = "xgpu.pure_call"(%arg0, %[[ROW]], %[[COLUMN]])
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[A]], %[[X]]
// CHECK-NEXT: "xgpu.yield"(%[[B]], %[[C]], %[[D]], %[[NEXT]])
// CHECK: "xgpu.shuffle_reduce"(%[[SUMS]]#0) {combiner = @fusion_0__combiner, distance = 8 : i64}
// CHECK: distance = 16 : i64
// CHECK: "xgpu.shuffle_reduce"(%[[SUMS]]#3) {combiner = @fusion_0__combiner, distance = 8 : i64}
// CHECK: distance = 16 : i64
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"() : () -> tensor<512xf32>
// CHECK: d0 mod 32 in [0, 7]
// CHECK: %[[SYNCED:.*]] = "xgpu.sync_threads"
// What sixteen warps have is combined by one thread for each column.
// CHECK: %[[FIRST:.*]] = tensor.extract %[[SYNCED]][%[[ADDRESS:.*]]]
// CHECK: "xgpu.loop"(%[[ADDRESS]], %[[FIRST]])
// CHECK: tensor.extract %[[SYNCED]]
// CHECK-NEXT: arith.addf
// CHECK: (d0)[s0] -> (d0 + s0 * 32), d0 in [0, 511], s0 in [1, 15]
// CHECK: callee = @fusion_0__epilogue__root
func.func @main(%x: tensor<16384x16384xf32>) -> tensor<16384xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16384x16384xf32>, tensor<f32>) -> tensor<16384xf32>
  return %0 : tensor<16384xf32>
}
