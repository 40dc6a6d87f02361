// RUN: xgpu-opt %s -p pipeline-tiles --verify-diagnostics

// Several buffers are of tiles that are copied in a step.
func.func @k(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>, xgpu.layout = array<i64: 8, 1>, xgpu.place = "shared"} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    // expected-error @below {{attribute 'xgpu.stages': expected 1, as no tile is copied to shared memory in a step, got 2}}
    %s = "xgpu.steps"(%x) ({
    ^bb0(%step: index, %c: tensor<4x8xf32>):
      "xgpu.yield"(%c) : (tensor<4x8xf32>) -> ()
    }) {count = 2 : i64, xgpu.layout = [array<i64: 8, 1>], xgpu.place = ["shared"], xgpu.stages = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%s, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
