// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A row of 128 elements is for one warp, each lane reading four at a time; a block has eight such groups, fewer if there
// are few rows. No shared memory.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "reduce_row"
// CHECK: %[[START:.*]] = "xgpu.pure_call"(%arg0) {callee = @fusion_0__initial__root}
// CHECK: %[[OWN:.*]] = "xgpu.loop"(%[[THREAD:.*]], %[[BLOCK:.*]], %[[START]])
// CHECK-NEXT: ^bb0({{.*}}, %[[PARTIAL:[a-z0-9]+]]: f32):
// CHECK-NEXT: %[[SQUARE:.*]] = "xgpu.pure_call"(%arg0, {{.*}}) {callee = @fusion_0__prologue__root}
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[PARTIAL]], %[[SQUARE]]
// CHECK-NEXT: "xgpu.yield"(%[[NEXT]])
// CHECK-NEXT: (d0, d1)[s0, s1, s2] -> (d1 * 8 + d0 floordiv 32, s0 * 128 + s1 * 128 + s2 + (d0 mod 32) * 4)
// CHECK: %[[A:.*]] = "xgpu.shuffle_reduce"(%[[OWN]]) {combiner = @fusion_0__combiner, distance = 1 : i64}
// CHECK: %[[B:.*]] = "xgpu.shuffle_reduce"(%[[A]]) {combiner = @fusion_0__combiner, distance = 2 : i64}
// CHECK: %[[C:.*]] = "xgpu.shuffle_reduce"(%[[B]]) {combiner = @fusion_0__combiner, distance = 4 : i64}
// CHECK: %[[D:.*]] = "xgpu.shuffle_reduce"(%[[C]]) {combiner = @fusion_0__combiner, distance = 8 : i64}
// CHECK: %[[E:.*]] = "xgpu.shuffle_reduce"(%[[D]]) {combiner = @fusion_0__combiner, distance = 16 : i64}
// CHECK-NOT: xgpu.allocate_shared
// CHECK: "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %arg1)
// CHECK: %[[ROOT:.*]] = "xgpu.pure_call"(%arg0, %[[ROW:.*]], %[[E]]) {callee = @fusion_0__epilogue__root}
// CHECK: tensor.insert %[[ROOT]] into %{{.*}}[%[[ROW]]]
// CHECK: d0 mod 32 in [0, 0]
// CHECK-LABEL: func.func private @fusion_0__prologue__root
// CHECK: arith.mulf
// CHECK-LABEL: func.func private @fusion_0__combiner
// CHECK: arith.addf
// CHECK-LABEL: func.func private @fusion_0__epilogue__root
// CHECK: math.sqrt
func.func @main(%x: tensor<8192x128xf32>) -> tensor<8192xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<8192x128xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8192x128xf32>, tensor<f32>) -> tensor<8192xf32>
  %2 = stablehlo.sqrt %1 : tensor<8192xf32>
  return %2 : tensor<8192xf32>
}
