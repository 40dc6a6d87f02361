// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=PLAN
// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The loop is a fusion of its own.
// PLAN-LABEL: func.func private @fusion_0(%arg0: tensor<9x33xf32>)
// PLAN-SAME: xgpu.emitter = "recurrence"
// PLAN: %[[LOOP:.*]]:4 = stablehlo.while
// PLAN-SAME: xgpu.hero
// PLAN: return %[[LOOP]]#2, %[[LOOP]]#3 : tensor<33xf32>, tensor<9x33xf32>

// A thread has an element of the state, in a register; what it reads and writes of the stacks follows the counter.
// CHECK-LABEL: func.func @fusion_0(
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %arg1, %arg2)
// CHECK: ^bb0(%[[AT:.*]]: index, %[[FINAL:.*]]: tensor<33xf32>, %[[STACK:.*]]: tensor<9x33xf32>)
// CHECK: %[[START:.*]] = "xgpu.pure_call"(%arg0, %[[AT]]) {callee = @fusion_0__start__root}
// CHECK: "xgpu.loop"(%[[START]], %[[STACK]])
// CHECK: ^bb0(%{{[^,]*}}: index, %[[TIME:.*]]: index, %[[STATE:.*]]: f32, %[[STACKED:.*]]: tensor<9x33xf32>)
// CHECK: %[[CAST:.*]] = arith.index_castui %[[TIME]] : index to i32
// CHECK: %[[I:.*]] = arith.addi
// CHECK: %[[NEXT:.*]]:2 = "xgpu.pure_call"(%arg0, %[[AT]], %[[I]], %[[STATE]]) {callee = @fusion_0__step__root}
// CHECK: %[[PLACE:.*]] = "xgpu.apply_indexing"(%[[TIME]], %[[AT]]) {map = #xgpu.map<(d0, d1) -> (-d0 + 8),
// CHECK: %[[NEW:.*]] = tensor.insert %[[NEXT]]#1 into %[[STACKED]][%[[PLACE]], %[[AT]]]
// CHECK: "xgpu.yield"(%[[NEXT]]#0, %[[NEW]])
// CHECK: tensor.insert %{{.*}} into %[[FINAL]][%[[AT]]]
// CHECK-LABEL: func.func private @fusion_0__step__root(
// CHECK-SAME: %{{.*}}: tensor<9x33xf32>, %{{.*}}: index {{.*}}, %[[COUNTER:.*]]: i32, %[[H:.*]]: f32) -> (f32, f32)
func.func @main(%xs: tensor<9x33xf32>) -> (tensor<33xf32>, tensor<9x33xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c8 = stablehlo.constant dense<8> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<33xf32>
  %ys0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<9x33xf32>
  %r:4 = stablehlo.while(%x = %xs, %i = %c0, %h = %h0, %ys = %ys0)
      : tensor<9x33xf32>, tensor<i32>, tensor<33xf32>, tensor<9x33xf32>
  cond {
    %c9 = stablehlo.constant dense<9> : tensor<i32>
    %more = stablehlo.compare LT, %i, %c9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %back = stablehlo.subtract %c8, %i : tensor<i32>
    %slice = stablehlo.dynamic_slice %x, %back, %c0, sizes = [1, 33]
        : (tensor<9x33xf32>, tensor<i32>, tensor<i32>) -> tensor<1x33xf32>
    %row = stablehlo.reshape %slice : (tensor<1x33xf32>) -> tensor<33xf32>
    %new = stablehlo.add %h, %row : tensor<33xf32>
    %y = stablehlo.reshape %h : (tensor<33xf32>) -> tensor<1x33xf32>
    %ys1 = stablehlo.dynamic_update_slice %ys, %y, %back, %c0
        : (tensor<9x33xf32>, tensor<1x33xf32>, tensor<i32>, tensor<i32>) -> tensor<9x33xf32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %x, %next, %new, %ys1 : tensor<9x33xf32>, tensor<i32>, tensor<33xf32>, tensor<9x33xf32>
  }
  return %r#2, %r#3 : tensor<33xf32>, tensor<9x33xf32>
}
