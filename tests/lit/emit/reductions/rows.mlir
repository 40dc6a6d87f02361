// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Softmax of rows for one warp: three walks over the same elements. The second is given what the shuffles of the first
// end as, the third also what those of the second do, and stores. No lane needs what another warp has, so no shared memory.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "rows", xgpu.grid = array<i64: 1024, 1, 1>
// CHECK-NOT: xgpu.allocate_shared
// CHECK: %[[LOWEST:.*]] = "xgpu.pure_call"(%arg0) {callee = @fusion_0__initial__root}
// CHECK: %[[OWN_MAX:.*]] = "xgpu.loop"(%[[THREAD:.*]], %[[BLOCK:.*]], %[[LOWEST]])
// CHECK: "xgpu.pure_call"(%arg0, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {callee = @fusion_0__prologue__root}
// CHECK-NEXT: arith.maximumf
// CHECK: map = #xgpu.map<[[MAP:.*]]>, xgpu.many_rests
// CHECK: "xgpu.shuffle_reduce"(%[[OWN_MAX]]) {combiner = @fusion_0__combiner, distance = 1 : i64}
// CHECK: %[[MAX:.*]] = "xgpu.shuffle_reduce"({{.*}}) {combiner = @fusion_0__combiner, distance = 16 : i64}
// CHECK-NEXT: %[[ZERO:.*]] = "xgpu.pure_call"(%arg0) {callee = @fusion_0__initial_1__root}
// CHECK-NEXT: %[[OWN_SUM:.*]] = "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %[[ZERO]])
// CHECK: "xgpu.pure_call"(%arg0, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %[[MAX]]) {callee = @fusion_0__prologue_1__root}
// CHECK-NEXT: arith.addf
// CHECK: map = #xgpu.map<[[MAP]]>, xgpu.many_rests
// CHECK: "xgpu.shuffle_reduce"(%[[OWN_SUM]]) {combiner = @fusion_0__combiner_1, distance = 1 : i64}
// CHECK: %[[SUM:.*]] = "xgpu.shuffle_reduce"({{.*}}) {combiner = @fusion_0__combiner_1, distance = 16 : i64}
// CHECK-NEXT: %[[STORED:.*]] = "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %arg1)
// CHECK-NEXT: ^bb0({{.*}}, %[[ROW:[a-z0-9]+]]: index, %[[COLUMN:[a-z0-9]+]]: index, %[[OUT:[a-z0-9]+]]: tensor<8192x128xf32>):
// CHECK-NEXT: %[[QUOTIENT:.*]] = "xgpu.pure_call"(%arg0, %[[ROW]], %[[COLUMN]], %[[MAX]], %[[SUM]]) {callee = @fusion_0__prologue_2__root}
// CHECK-NEXT: tensor.insert %[[QUOTIENT]] into %[[OUT]][%[[ROW]], %[[COLUMN]]]
// CHECK: map = #xgpu.map<[[MAP]]>, xgpu.many_rests
// CHECK-NEXT: return %[[STORED]]
// CHECK-LABEL: func.func private @fusion_0__prologue_2__root
// CHECK: math.exp
// CHECK: arith.divf
func.func @main(%x: tensor<8192x128xf32>) -> tensor<8192x128xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<8192x128xf32>, tensor<f32>) -> tensor<8192xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8192xf32>) -> tensor<8192x128xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<8192x128xf32>
  %3 = stablehlo.exponential %2 : tensor<8192x128xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8192x128xf32>, tensor<f32>) -> tensor<8192xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<8192xf32>) -> tensor<8192x128xf32>
  %6 = stablehlo.divide %3, %5 : tensor<8192x128xf32>
  return %6 : tensor<8192x128xf32>
}
