// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=PLAN
// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The numbers of a schedule that are written are kept, and those that are left out are chosen. The kernel is launched
// and its threads take what the numbers say.
// PLAN: xgpu.schedule = #xgpu.schedule<threads = 64, vector = 2, rows = 3, row = 100>
// PLAN: xgpu.schedule = #xgpu.schedule<vector = 2, lanes = 8, outer_lanes = 1, groups = 4, unroll = 5, outer_unroll = 1, aligned = false>
module attributes {xgpu.level = "fusions"} {
  // CHECK-LABEL: func.func @double(
  // CHECK-SAME: xgpu.block = array<i64: 64, 1, 1>
  // CHECK-SAME: xgpu.grid = array<i64: 17, 1, 1>
  // CHECK: "xgpu.loop"
  // CHECK: s0 in [0, 2], s1 in [0, 1]
  func.func private @double(%x: tensor<63x100xf32>) -> tensor<63x100xf32>
      attributes {xgpu.emitter = "loop", xgpu.schedule = #xgpu.schedule<rows = 3, threads = 64, vector = 2>} {
    %0 = stablehlo.add %x, %x : tensor<63x100xf32>
    return %0 : tensor<63x100xf32>
  }
  // CHECK-LABEL: func.func @sum(
  // CHECK-SAME: xgpu.block = array<i64: 32, 1, 1>
  // CHECK-SAME: xgpu.grid = array<i64: 16, 1, 1>
  // CHECK: s0 in [0, 1], s1 in [0, 4], s2 in [0, 1]
  func.func private @sum(%x: tensor<63x100xf32>) -> tensor<63xf32>
      attributes {xgpu.emitter = "reduce_row", xgpu.schedule = #xgpu.schedule<lanes = 8, vector = 2, groups = 4, unroll = 5>} {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] {xgpu.hero} : (tensor<63x100xf32>, tensor<f32>) -> tensor<63xf32>
    return %0 : tensor<63xf32>
  }
  func.func @main(%x: tensor<63x100xf32>) -> tensor<63xf32> {
    %0 = call @double(%x) : (tensor<63x100xf32>) -> tensor<63x100xf32>
    %1 = call @sum(%0) : (tensor<63x100xf32>) -> tensor<63xf32>
    return %1 : tensor<63xf32>
  }
}
