// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Enough columns for all threads: each walks down its own, and stores their results. No shuffles, no shared memory.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "reduce_column"
// CHECK: %[[SUMS:.*]]:4 = "xgpu.loop"
// CHECK-NOT: xgpu.shuffle_reduce
// CHECK-NOT: xgpu.allocate_shared
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %arg1, %[[SUMS]]#0, %[[SUMS]]#1, %[[SUMS]]#2, %[[SUMS]]#3)
// CHECK: "xgpu.pure_call"({{.*}}) {callee = @fusion_0__epilogue__root}
func.func @main(%x: tensor<256x16x4096xf32>) -> tensor<256x4096xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<256x16x4096xf32>, tensor<f32>) -> tensor<256x4096xf32>
  return %0 : tensor<256x4096xf32>
}
