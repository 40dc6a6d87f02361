// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=FUSIONS
// RUN: xgpu compile %s --emit emitted | FileCheck %s
// RUN: xgpu compile %s | FileCheck %s --check-prefix=PTX
// RUN: xgpu explain %s --plan | FileCheck %s --check-prefix=PLAN

// Independent kernels are parts of one, each with its own family and schedule, reductions first; what moves too many
// bytes is none of them.
// FUSIONS: func.func private @fusion_0_part_0(%{{.*}}: tensor<3x5000xf32>) -> tensor<3xf32>
// FUSIONS-SAME: xgpu.emitter = "reduce_row", xgpu.schedule = #xgpu.schedule<vector = 4, lanes = 1024,
// FUSIONS: func.func private @fusion_0_part_1(%{{.*}}: tensor<7x40xf32>) -> tensor<7xf32>
// FUSIONS-SAME: xgpu.emitter = "reduce_row", xgpu.schedule = #xgpu.schedule<vector = 4, lanes = {{[0-9]+}}, outer_lanes = 1, groups = {{[0-9]+}},
// FUSIONS: func.func private @fusion_0_part_2(%{{.*}}: tensor<129x3xf32>) -> tensor<129x3xf32>
// FUSIONS-SAME: xgpu.emitter = "loop", xgpu.schedule = #xgpu.schedule<threads = 1024, vector = 1, rows = 1, row = {{[0-9]+}}>
// FUSIONS: func.func private @fusion_0(
// FUSIONS-SAME: -> (tensor<3xf32>, tensor<7xf32>, tensor<129x3xf32>)
// FUSIONS-SAME: xgpu.emitter = "parts", xgpu.schedule = #xgpu.schedule<threads = 1024>
// FUSIONS-NEXT: %[[A:.*]] = call @fusion_0_part_0(%
// FUSIONS-NEXT: %[[B:.*]] = call @fusion_0_part_1(%
// FUSIONS-NEXT: %[[C:.*]] = call @fusion_0_part_2(%
// FUSIONS-NEXT: return %[[A]], %[[B]], %[[C]]
// FUSIONS: func.func private @fusion_1(
// FUSIONS-SAME: -> tensor<2048x1024xf32>
// FUSIONS-LABEL: func.func @main(
// FUSIONS-COUNT-2: call @
// FUSIONS-NOT: call @

// Each block computes one of the parts, which it finds in as few steps as there are bits in their number. All parts
// have the same memory for what their warps exchange.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.block = array<i64: 1024, 1, 1>, xgpu.emitter = "parts", xgpu.grid = array<i64: 5, 1, 1>
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"() : () -> tensor<32xf32>
// CHECK-NOT: allocate_shared
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[BLOCK]], %c3
// CHECK: %[[ALL:.*]]:3 = scf.if %[[FIRST]]
// CHECK: "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %[[TILE]])
// CHECK: "xgpu.sync_threads"
// CHECK: scf.yield %{{.*}}, %[[B:.*]], %[[C:.*]] :
// CHECK: } else {
// CHECK: %[[SECOND:.*]] = arith.cmpi ult, %[[BLOCK]], %c4
// CHECK: %[[REST:.*]]:2 = scf.if %[[SECOND]]
// The number of a block counts from the first of its part.
// CHECK: %[[OWN:.*]] = "xgpu.apply_indexing"(%[[BLOCK]]) {map = #xgpu.map<(d0) -> (d0 - 3), d0 in [3, 3]>}
// CHECK: "xgpu.loop"(%[[THREAD]], %[[OWN]],
// CHECK: callee = @fusion_0_part_1__prologue__root
// CHECK: scf.yield %{{.*}}, %[[C]] :
// CHECK: "xgpu.loop"(%[[THREAD]], %{{.*}}, %[[C]])
// CHECK: callee = @fusion_0_part_2__root
// CHECK: scf.yield %[[B]], %
// CHECK: scf.yield %{{.*}}, %[[REST]]#0, %[[REST]]#1
// CHECK: return %[[ALL]]#0, %[[ALL]]#1, %[[ALL]]#2
// A part has the parameters that it reads.
// CHECK: func.func private @fusion_0_part_0__prologue__root(%arg0: tensor<3x5000xf32>, %arg1: index {{{.*}}}, %arg2: index {{{.*}}}) -> f32
// CHECK: func.func private @fusion_0_part_1__prologue__root(%arg0: tensor<7x40xf32>, %arg1: index {{{.*}}}, %arg2: index {{{.*}}}) -> f32
// CHECK: func.func private @fusion_0_part_2__root(%arg0: tensor<129x3xf32>, %arg1: index {{{.*}}}, %arg2: index {{{.*}}}) -> f32

// PTX-LABEL: .entry fusion_0(
// PTX: setp.{{.*}}.u32 {{.*}}, %r{{[0-9]+}}, 2;

// PLAN: stablehlo.sine of type tensor<2048x1024xf32>{{.*}}: two kernels: it moves 16,777,216 bytes, and memory only 12,000,000 in the time of a launch
// PLAN: one kernel: neither reads the other's results, and it moves 3,096 bytes: memory moves 12,000,000 in the time of a launch
func.func @main(%x: tensor<129x3xf32>, %y: tensor<3x5000xf32>, %z: tensor<7x40xf32>, %long: tensor<2048x1024xf32>)
    -> (tensor<129x3xf32>, tensor<3xf32>, tensor<2048x1024xf32>, tensor<7xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.negate %x : tensor<129x3xf32>
  %1 = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x5000xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = stablehlo.sine %long : tensor<2048x1024xf32>
  %3 = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<7x40xf32>, tensor<f32>) -> tensor<7xf32>
  return %0, %1, %2, %3 : tensor<129x3xf32>, tensor<3xf32>, tensor<2048x1024xf32>, tensor<7xf32>
}
