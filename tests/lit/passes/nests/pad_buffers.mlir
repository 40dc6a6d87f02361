// RUN: xgpu-opt %s -p 'pad-buffers' --split-input-file --verify-diagnostics | FileCheck %s

// A column of the tile is read by a warp: one element after each row puts its elements into different banks.
// CHECK-LABEL: func.func @tile
// CHECK: {called = "t", memory = "shared", pad = 1 : i64}
func.func @tile(%arg0: memref<64x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<32x32xf32>
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          "xgpu.par"() ({
          ^bb0(%arg5: index):
            %1 = "xgpu.read"(%arg0, %arg2, %arg3, %arg4, %arg5) {map = #xgpu.map<(d0, d1, d2, d3) -> (d0 * 32 + d2, d1 * 32 + d3), d0 in [0, 1], d1 in [0, 1], d2 in [0, 31], d3 in [0, 31]>} : (memref<64x64xf32>, index, index, index, index) -> tensor<f32>
            "xgpu.write"(%1, %0, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 31], d1 in [0, 31]>} : (tensor<f32>, memref<32x32xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {band = "thread", called = "j", extent = 32 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 32 : i64, map = #xgpu.map<(d0)[s0] -> (d0 floordiv 8, s0 + (d0 mod 8) * 4), d0 in [0, 255], s0 in [0, 3]>} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          "xgpu.par"() ({
          ^bb0(%arg5: index):
            %1 = "xgpu.read"(%0, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 31], d1 in [0, 31]>} : (memref<32x32xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%1, %arg1, %arg2, %arg3, %arg4, %arg5) {map = #xgpu.map<(d0, d1, d2, d3) -> (d1 * 32 + d2, d0 * 32 + d3), d0 in [0, 1], d1 in [0, 1], d2 in [0, 31], d3 in [0, 31]>} : (tensor<f32>, memref<64x64xf32>, index, index, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {band = "thread", called = "j", extent = 32 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 32 : i64, map = #xgpu.map<(d0)[s0] -> (d0 floordiv 8, s0 + (d0 mod 8) * 4), d0 in [0, 255], s0 in [0, 3]>} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "block", called = "bj", extent = 2 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "bi", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0 floordiv 2, d0 mod 2), d0 in [0, 3]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 256 : i64, grid = 4 : i64} : () -> ()
  return
}
