// RUN: xgpu-opt %s -p multicast-tiles --split-input-file --verify-diagnostics | FileCheck %s

// A cluster is two neighbours of one row of blocks: they need the same rows of the left operand, which the first one
// copies for both, and different columns of the right one. What is not copied by TMA is left alone.
// CHECK-LABEL: func.func @k
// CHECK: "xgpu.tile"{{.*}}xgpu.copy = "bulk", xgpu.multicast = array<i64: 3, 0>
// CHECK: "xgpu.tile"{{.*}}xgpu.copy = "bulk", xgpu.multicast = array<i64: 1, 2>
// CHECK-NOT: xgpu.multicast
module attributes {xgpu.level = "tiles"} {
  func.func @k(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.cluster = array<i64: 2, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
    %0 = "xgpu.blocks"(%arg3) ({
    ^bb0(%i: index, %j: index, %out: tensor<64x64xbf16>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<32x32xf32>
      %1 = "xgpu.steps"(%cst) ({
      ^bb0(%s: index, %acc: tensor<32x32xf32>):
        %7 = "xgpu.tile"(%arg0, %i, %j, %s) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "bulk"} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
        %8 = "xgpu.tile"(%arg1, %i, %j, %s) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "bulk"} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
        %9 = stablehlo.dot_general %7, %8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
        %10 = stablehlo.add %acc, %9 : tensor<32x32xf32>
        "xgpu.yield"(%10) : (tensor<32x32xf32>) -> ()
      }) {count = 3 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %2 = "xgpu.tile"(%arg2, %i, %j) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>} : (tensor<64xf32>, index, index) -> tensor<32xf32>
      %b = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<32xf32>) -> tensor<32x32xf32>
      %3 = stablehlo.add %1, %b : tensor<32x32xf32>
      %4 = stablehlo.tanh %3 : tensor<32x32xf32>
      %5 = stablehlo.convert %4 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
      %6 = "xgpu.insert_tile"(%5, %out, %i, %j) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
      "xgpu.yield"(%6) : (tensor<64x64xbf16>) -> ()
    }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    return %0 : tensor<64x64xbf16>
  }
}

// -----

// Masks of a person may copy more, but not the same tile to blocks that need different ones.

module attributes {xgpu.level = "tiles"} {
  func.func @k(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.cluster = array<i64: 2, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
    %0 = "xgpu.blocks"(%arg3) ({
    ^bb0(%i: index, %j: index, %out: tensor<64x64xbf16>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<32x32xf32>
      %1 = "xgpu.steps"(%cst) ({
      ^bb0(%s: index, %acc: tensor<32x32xf32>):
        %7 = "xgpu.tile"(%arg0, %i, %j, %s) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "bulk"} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
        // expected-error @below {{attribute 'xgpu.multicast': expected no more than the blocks 0x1, which need the tile of block 0, got (3, 0)}}
        %8 = "xgpu.tile"(%arg1, %i, %j, %s) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "bulk", xgpu.multicast = array<i64: 3, 0>} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
        %9 = stablehlo.dot_general %7, %8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
        %10 = stablehlo.add %acc, %9 : tensor<32x32xf32>
        "xgpu.yield"(%10) : (tensor<32x32xf32>) -> ()
      }) {count = 3 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %2 = "xgpu.tile"(%arg2, %i, %j) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>} : (tensor<64xf32>, index, index) -> tensor<32xf32>
      %b = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<32xf32>) -> tensor<32x32xf32>
      %3 = stablehlo.add %1, %b : tensor<32x32xf32>
      %4 = stablehlo.tanh %3 : tensor<32x32xf32>
      %5 = stablehlo.convert %4 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
      %6 = "xgpu.insert_tile"(%5, %out, %i, %j) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
      "xgpu.yield"(%6) : (tensor<64x64xbf16>) -> ()
    }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    return %0 : tensor<64x64xbf16>
  }
}

// -----

// Masks are of copies by TMA.

func.func @k(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.cluster = array<i64: 2, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    // expected-error @below {{attribute 'xgpu.multicast': expected 'xgpu.copy' to be bulk with it, got async}}
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>, xgpu.copy = "async", xgpu.multicast = array<i64: 1, 2>} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%x, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
