// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=FUSIONS
// RUN: xgpu compile %s --emit emitted | FileCheck %s
// RUN: xgpu compile %s | FileCheck %s --check-prefix=PTX

// Loops over arrays of different shapes and types are one kernel; what moves too many bytes has its own.
// FUSIONS: func.func private @fusion_0(
// FUSIONS-SAME: -> (tensor<129x3xf32>, tensor<33xbf16>, tensor<5x7xf32>)
// FUSIONS-SAME: xgpu.schedule = #xgpu.schedule<threads = 128, vector = 1, rows = 1>
// FUSIONS: func.func private @fusion_1(
// FUSIONS-SAME: -> tensor<2048x1024xf32>
// FUSIONS-COUNT-2: call @
// FUSIONS-NOT: call @

// Each block computes elements of one of the parts, which it finds in as few steps as there are bits in their number.
// A thread takes two bf16, as many bytes as one f32 has.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.grid = array<i64: 6, 1, 1>
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[BLOCK]], %c4
// CHECK: %[[ALL:.*]]:3 = scf.if %[[FIRST]]
// CHECK: "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %[[A:arg[0-9]+]])
// CHECK: callee = @fusion_0__part_0__root
// CHECK: d1 in [0, 3], s0 in [0, 0], d0 + d1 * 128 in [0, 386]
// CHECK: scf.yield %{{.*}}, %[[B:.*]], %[[C:.*]] :
// CHECK: } else {
// CHECK: %[[SECOND:.*]] = arith.cmpi ult, %[[BLOCK]], %c5
// CHECK: %[[REST:.*]]:2 = scf.if %[[SECOND]]
// CHECK: "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %[[B]])
// CHECK: callee = @fusion_0__part_1__root
// CHECK: d1 in [4, 4], s0 in [0, 1], d0 * 2 + s0 in [0, 32]
// CHECK: scf.yield %{{.*}}, %[[C]] :
// CHECK: "xgpu.loop"(%[[THREAD]], %[[BLOCK]], %[[C]])
// CHECK: callee = @fusion_0__part_2__root
// CHECK: d1 in [5, 5]
// CHECK: scf.yield %[[B]], %
// CHECK: scf.yield %[[A]], %[[REST]]#0, %[[REST]]#1
// CHECK: return %[[ALL]]#0, %[[ALL]]#1, %[[ALL]]#2
// A part has the parameters that it reads.
// CHECK: func.func private @fusion_0__part_0__root(%arg0: tensor<129x3xf32>, %arg1: index {{{.*}}}, %arg2: index {{{.*}}}) -> f32
// CHECK: func.func private @fusion_0__part_1__root(%arg0: tensor<33xbf16>, %arg1: index {{{.*}}}) -> bf16
// CHECK: func.func private @fusion_0__part_2__root(

// PTX-LABEL: .entry fusion_0(
// PTX: setp.{{.*}}.u32 {{.*}}, %r{{[0-9]+}}, 3;
func.func @main(%x: tensor<129x3xf32>, %y: tensor<33xbf16>, %z: tensor<5x7xf32>, %long: tensor<2048x1024xf32>)
    -> (tensor<129x3xf32>, tensor<33xbf16>, tensor<2048x1024xf32>, tensor<5x7xf32>) {
  %0 = stablehlo.negate %x : tensor<129x3xf32>
  %1 = stablehlo.multiply %y, %y : tensor<33xbf16>
  %2 = stablehlo.sine %long : tensor<2048x1024xf32>
  %3 = stablehlo.exponential %z : tensor<5x7xf32>
  return %0, %1, %2, %3 : tensor<129x3xf32>, tensor<33xbf16>, tensor<2048x1024xf32>, tensor<5x7xf32>
}
