// RUN: not xgpu-opt %s -p place-tiles 2>&1 | FileCheck %s

// A tile that is placed by hand begins where the widest access may.

// CHECK: 'xgpu.tile': attribute 'xgpu.offset': expected a multiple of 16 bytes, got 3
module attributes {xgpu.level = "tiles"} {
  func.func @kernel(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
    %0 = "xgpu.blocks"(%arg1) ({
    ^bb0(%arg2: index, %arg3: tensor<8x8xf32>):
      %1 = "xgpu.tile"(%arg0) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 7], s1 in [0, 7]>, xgpu.copy = "async", xgpu.layout = array<i64: 8, 1>, xgpu.offset = 3 : i64, xgpu.place = "shared"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %2 = "xgpu.insert_tile"(%1, %arg3, %arg2) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 0], s0 in [0, 7], s1 in [0, 7]>} : (tensor<8x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
      "xgpu.yield"(%2) : (tensor<8x8xf32>) -> ()
    }) {grid = array<i64: 1>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
