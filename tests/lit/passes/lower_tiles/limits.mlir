// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles,multicast-tiles,schedule-tiles,place-tiles,lower-tiles | FileCheck %s

// Steps of a block program run all: their limits, of which visible steps could be known, are no part of what they carry.

// CHECK-LABEL: func.func @f
// CHECK-NOT:     xgpu.steps
// CHECK:         scf.for
// CHECK:         return
module attributes {xgpu.level = "tiles"} {
  func.func @f(%arg0: tensor<128x64xf32>, %arg1: tensor<4xi32>, %arg2: tensor<128x16xf32>) -> tensor<128x16xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
    %0 = "xgpu.blocks"(%arg2) ({
    ^bb0(%arg3: index, %arg4: tensor<128x16xf32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<32x16xf32>
      %lim = "xgpu.tile"(%arg1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : (tensor<4xi32>, index) -> tensor<i32>
      %1 = "xgpu.steps"(%cst, %lim) ({
      ^bb0(%arg5: index, %arg6: tensor<32x16xf32>):
        %3 = "xgpu.tile"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 16 + s1), d0 in [0, 3], d1 in [0, 3], s0 in [0, 31], s1 in [0, 15]>} : (tensor<128x64xf32>, index, index) -> tensor<32x16xf32>
        %4 = stablehlo.add %arg6, %3 : tensor<32x16xf32>
        "xgpu.yield"(%4) : (tensor<32x16xf32>) -> ()
      }) {count = 4 : i64} : (tensor<32x16xf32>, tensor<i32>) -> tensor<32x16xf32>
      %2 = "xgpu.insert_tile"(%1, %arg4, %arg3) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 3], s0 in [0, 31], s1 in [0, 15]>} : (tensor<32x16xf32>, tensor<128x16xf32>, index) -> tensor<128x16xf32>
      "xgpu.yield"(%2) : (tensor<128x16xf32>) -> ()
    }) {grid = array<i64: 4>} : (tensor<128x16xf32>) -> tensor<128x16xf32>
    return %0 : tensor<128x16xf32>
  }
}
