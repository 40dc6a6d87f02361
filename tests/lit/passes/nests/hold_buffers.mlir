// RUN: xgpu-opt %s -p 'hold-buffers' --split-input-file --verify-diagnostics | FileCheck %s

// Threads hold the elements of the sum, each those of its iterations.
// CHECK-LABEL: func.func @sums
// CHECK: "xgpu.new"() {called = "sum", memory = "threads"}
func.func @sums(%arg0: memref<2x8x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "sum"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.seq"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %1 = "xgpu.read"(%arg0, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, d2), d0 in [0, 1], d1 in [0, 7], d2 in [0, 63]>} : (memref<2x8x64xf32>, index, index, index) -> tensor<f32>
          "xgpu.accumulate"(%1, %0, %arg4) {atomic = false, combiner = "add", map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 8 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %1 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%1, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (tensor<f32>, memref<2x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 2 : i64} : () -> ()
  return
}

// -----

// By one map of both loops warps would read or write columns: the tile is in shared memory.
// CHECK-LABEL: func.func @transpose
// CHECK: "xgpu.new"() {called = "t", memory = "shared"}
// CHECK: map = #xgpu.map<(d0)[s0, s1] ->
func.func @transpose(%arg0: memref<64x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t"} : () -> memref<64x64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %1 = "xgpu.read"(%arg0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
          "xgpu.write"(%1, %0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "j", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0)[s0, s1] -> (s0 * 16 + d0 floordiv 16, s1 + (d0 mod 16) * 4), d0 in [0, 255], s0 in [0, 3], s1 in [0, 3]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %1 = "xgpu.read"(%0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
          "xgpu.write"(%1, %arg1, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "j", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0)[s0, s1] -> (s1 + (d0 mod 16) * 4, s0 * 16 + d0 floordiv 16), d0 in [0, 255], s0 in [0, 3], s1 in [0, 3]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64, map = #xgpu.map<(d0) -> (0), d0 in [0, 0]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 256 : i64, grid = 1 : i64} : () -> ()
  return
}

// -----

// A program that asks for registers has them, and one map of both loops.
// CHECK-LABEL: func.func @asked
// CHECK: "xgpu.new"() {called = "t", memory = "threads"}
// CHECK: map = [[MAP:#xgpu.map<\(d0\)\[s0.*>]]}
// CHECK: map = [[MAP]]}
func.func @asked(%arg0: memref<64x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "threads"} : () -> memref<64x64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %1 = "xgpu.read"(%arg0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
          "xgpu.write"(%1, %0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "j", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0)[s0, s1] -> (s0 * 16 + d0 floordiv 16, s1 + (d0 mod 16) * 4), d0 in [0, 255], s0 in [0, 3], s1 in [0, 3]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %1 = "xgpu.read"(%0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
          "xgpu.write"(%1, %arg1, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "j", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0)[s0, s1] -> (s1 + (d0 mod 16) * 4, s0 * 16 + d0 floordiv 16), d0 in [0, 255], s0 in [0, 3], s1 in [0, 3]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64, map = #xgpu.map<(d0) -> (0), d0 in [0, 0]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 256 : i64, grid = 1 : i64} : () -> ()
  return
}

// -----

// Each iteration has a row of t.
// CHECK-LABEL: func.func @rows
// CHECK: "xgpu.new"() {called = "t", memory = "threads"} : () -> memref<4x32x3xf32>
func.func @rows(%arg0: memref<4x32x3xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<4x32x3xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t"} : () -> memref<4x32x3xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          "xgpu.seq"() ({
          ^bb0(%arg5: index):
            %1 = "xgpu.read"(%arg0, %arg3, %arg4, %arg5) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, d2), d0 in [0, 3], d1 in [0, 31], d2 in [0, 2]>} : (memref<4x32x3xf32>, index, index, index) -> tensor<f32>
            "xgpu.write"(%1, %0, %arg3, %arg4, %arg5) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, d2), d0 in [0, 3], d1 in [0, 31], d2 in [0, 2]>} : (tensor<f32>, memref<4x32x3xf32>, index, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "e", extent = 3 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {align = 32 : i64, band = "thread", called = "l", extent = 32 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "w", extent = 4 : i64, map = #xgpu.map<(d0) -> (d0 floordiv 32, d0 mod 32), d0 in [0, 127]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          "xgpu.seq"() ({
          ^bb0(%arg5: index):
            %1 = "xgpu.read"(%0, %arg3, %arg4, %arg5) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, -d2 + 2), d0 in [0, 3], d1 in [0, 31], d2 in [0, 2]>} : (memref<4x32x3xf32>, index, index, index) -> tensor<f32>
            "xgpu.write"(%1, %arg1, %arg3, %arg4, %arg5) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, d2), d0 in [0, 3], d1 in [0, 31], d2 in [0, 2]>} : (tensor<f32>, memref<4x32x3xf32>, index, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "e", extent = 3 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {align = 32 : i64, band = "thread", called = "l", extent = 32 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "w", extent = 4 : i64, map = #xgpu.map<(d0) -> (d0 floordiv 32, d0 mod 32), d0 in [0, 127]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64, map = #xgpu.map<(d0) -> (0), d0 in [0, 0]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 128 : i64, grid = 1 : i64} : () -> ()
  return
}
