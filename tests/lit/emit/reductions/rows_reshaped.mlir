// RUN: xgpu compile %s --emit emitted | FileCheck %s

// What follows the reductions has another shape than what they read, and as many elements: the same walk, with a
// function at the reshaped indices, which is given what the rows of those indices end as.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "rows"
// CHECK: "xgpu.pure_call"(%arg0, %arg1, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {callee = @fusion_0__prologue__root}
// CHECK: map = #xgpu.map<[[MAP:.*]]>, xgpu.many_rests
// CHECK: tensor.extract %{{.*}}: tensor<8xf32>
// CHECK: %[[MAX:.*]] = "xgpu.shuffle_reduce"({{.*}}) {combiner = @fusion_0__combiner, distance = 4 : i64}
// CHECK-NEXT: %{{.*}} = "xgpu.loop"(%{{.*}}, %{{.*}}, %arg2)
// CHECK-NEXT: ^bb0({{.*}}, %[[ROW:[a-z0-9]+]]: index, %[[COLUMN:[a-z0-9]+]]: index, %[[OUT:[a-z0-9]+]]: tensor<64x4x8x32xf32>):
// CHECK-NEXT: %[[AT:.*]]:3 = "xgpu.apply_indexing"(%[[ROW]], %[[COLUMN]]) {map = #xgpu.map<(d0, d1) -> (d1 floordiv 256, (d1 floordiv 32) mod 8, d1 mod 32)
// CHECK-NEXT: %[[VALUE:.*]] = "xgpu.pure_call"(%arg0, %arg1, %[[ROW]], %[[AT]]#0, %[[AT]]#1, %[[AT]]#2, %[[MAX]]) {callee = @fusion_0__reshaped_0_1__root}
// CHECK-NEXT: tensor.insert %[[VALUE]] into %[[OUT]][%[[ROW]], %[[AT]]#0, %[[AT]]#1, %[[AT]]#2]
// CHECK: map = #xgpu.map<[[MAP]]>, xgpu.many_rests
// CHECK-NOT: stablehlo.reduce
func.func @main(%x: tensor<64x4x8x32xf32>, %scale: tensor<4xf32>) -> tensor<64x4x8x32xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reshape %x : (tensor<64x4x8x32xf32>) -> tensor<64x1024xf32>
  %1 = stablehlo.reduce(%0 init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<64x1024xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<64xf32>) -> tensor<64x1024xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<64x1024xf32>
  %4 = stablehlo.reshape %3 : (tensor<64x1024xf32>) -> tensor<64x4x8x32xf32>
  %5 = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<4xf32>) -> tensor<64x4x8x32xf32>
  %6 = stablehlo.multiply %4, %5 : tensor<64x4x8x32xf32>
  return %6 : tensor<64x4x8x32xf32>
}
