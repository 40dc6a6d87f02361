// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Lanes that have a row sum it up; every one has the sum then, and the first one stores what it gives. All threads go
// on, as those beyond the end have lanes that wait for them.
// CHECK-LABEL: func.func @fusion_0(
// CHECK: %[[AT:.*]]:2 = "xgpu.apply_indexing"(%thread_id_x, %block_id_x) {map = #xgpu.map<(d0, d1) -> (
// CHECK-NOT: "xgpu.loop"(%thread_id_x
// CHECK: %[[PARTS:.*]]:2 = "xgpu.pure_call"(%arg0, %[[AT]]#0, %[[AT]]#1, %[[I:.*]], %[[H:.*]]) {callee = @fusion_0__stage__root}
// CHECK: %[[OWN:.*]] = arith.addf %[[PARTS]]#1, %[[PARTS]]#0
// CHECK: %[[PAIR:.*]] = "xgpu.shuffle_reduce"(%[[OWN]]) {combiner = @fusion_0__combiner, distance = 1 : i64}
// CHECK: %[[SUM:.*]] = "xgpu.shuffle_reduce"(%[[PAIR]]) {combiner = @fusion_0__combiner, distance = 2 : i64}
// CHECK: %[[MADE:.*]]:2 = "xgpu.pure_call"(%arg0, %[[AT]]#0, %[[AT]]#1, %[[I]], %[[H]], %[[SUM]]) {callee = @fusion_0__step__root}
// CHECK: "xgpu.loop"(%thread_id_x, %block_id_x, %{{.*}}) ({
// CHECK: tensor.insert %[[MADE]]#1 into
// CHECK: d0 mod 4 in [0, 0]
// CHECK: func.func private @fusion_0__combiner
func.func @main(%xs: tensor<9x33x4xf32>) -> tensor<9x33xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<33x4xf32>
  %ys0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<9x33xf32>
  %r:4 = stablehlo.while(%x = %xs, %i = %c0, %h = %h0, %ys = %ys0)
      : tensor<9x33x4xf32>, tensor<i32>, tensor<33x4xf32>, tensor<9x33xf32>
  cond {
    %c9 = stablehlo.constant dense<9> : tensor<i32>
    %more = stablehlo.compare LT, %i, %c9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %slice = stablehlo.dynamic_slice %x, %i, %c0, %c0, sizes = [1, 33, 4]
        : (tensor<9x33x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x33x4xf32>
    %row = stablehlo.reshape %slice : (tensor<1x33x4xf32>) -> tensor<33x4xf32>
    %sum = stablehlo.reduce(%h init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<33x4xf32>, tensor<f32>) -> tensor<33xf32>
    %wide = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<33xf32>) -> tensor<33x4xf32>
    %part = stablehlo.multiply %wide, %row : tensor<33x4xf32>
    %new = stablehlo.add %h, %part : tensor<33x4xf32>
    %y = stablehlo.reshape %sum : (tensor<33xf32>) -> tensor<1x33xf32>
    %ys1 = stablehlo.dynamic_update_slice %ys, %y, %i, %c0
        : (tensor<9x33xf32>, tensor<1x33xf32>, tensor<i32>, tensor<i32>) -> tensor<9x33xf32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %x, %next, %new, %ys1 : tensor<9x33x4xf32>, tensor<i32>, tensor<33x4xf32>, tensor<9x33xf32>
  }
  return %r#3 : tensor<9x33xf32>
}
