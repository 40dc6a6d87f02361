// RUN: xgpu-opt %s -p 'place-barriers' --split-input-file --verify-diagnostics | FileCheck %s

// What stays on its thread needs no barrier.
// CHECK-LABEL: func.func @same
// CHECK-NOT: xgpu.barrier
// CHECK: "xgpu.accumulate"
// CHECK: "xgpu.barrier"() {scope = "block"} : () -> ()
// CHECK-NOT: xgpu.barrier
func.func @same(%arg0: memref<4x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<4x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %1 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 3], d1 in [0, 63]>} : (memref<4x64xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%1, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
        "xgpu.accumulate"(%cst, %0, %arg3) {atomic = false, combiner = "multiply", map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %1 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        %2 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        %3 = stablehlo.add %1, %2 : tensor<f32>
        "xgpu.write"(%3, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 3], d1 in [0, 63]>} : (tensor<f32>, memref<4x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 4 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 4 : i64} : () -> ()
  return
}

// -----

// In a loop: before it is read what was written, and before it is written what was read before.
// CHECK-LABEL: func.func @loop
// CHECK: "xgpu.seq"() ({
// CHECK-NEXT: ^bb0
// CHECK-NEXT: "xgpu.barrier"() {scope = "block"} : () -> ()
// CHECK: "xgpu.write"
// CHECK: "xgpu.barrier"() {scope = "block"} : () -> ()
// CHECK: "xgpu.read"
// CHECK-NOT: xgpu.barrier
func.func @loop(%arg0: memref<4x8x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<4x8x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<64xf32>
      "xgpu.seq"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %1 = "xgpu.read"(%arg0, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, d2), d0 in [0, 3], d1 in [0, 7], d2 in [0, 63]>} : (memref<4x8x64xf32>, index, index, index) -> tensor<f32>
          "xgpu.write"(%1, %0, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %1 = "xgpu.read"(%0, %arg4) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
          "xgpu.write"(%1, %arg1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, d2), d0 in [0, 3], d1 in [0, 7], d2 in [0, 63]>} : (tensor<f32>, memref<4x8x64xf32>, index, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 8 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 4 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 4 : i64} : () -> ()
  return
}

// -----

// Threads that are neighbours are of one warp; what crosses warps needs a barrier of the block.
// CHECK-LABEL: func.func @warps
// CHECK: "xgpu.barrier"() {scope = "warp"} : () -> ()
// CHECK: "xgpu.barrier"() {scope = "block"} : () -> ()
// CHECK-NOT: xgpu.barrier
func.func @warps(%arg0: memref<2x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<64xf32>
      %1 = "xgpu.new"() {called = "u", memory = "shared"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (memref<2x64xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%2, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> ((d0 floordiv 2) * 2 - (d0 mod 2) + 1), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%2, %1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%1, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%2, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (tensor<f32>, memref<2x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 2 : i64} : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @asked
// CHECK-COUNT-2: "xgpu.barrier"() {scope = "block"} : () -> ()
// CHECK-NOT: xgpu.barrier
func.func @asked(%arg0: memref<2x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<64xf32>
      %1 = "xgpu.new"() {called = "u", memory = "shared"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (memref<2x64xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%2, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> ((d0 floordiv 2) * 2 - (d0 mod 2) + 1), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%2, %1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", block_barrier = true, called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%1, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%2, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (tensor<f32>, memref<2x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 2 : i64} : () -> ()
  return
}
