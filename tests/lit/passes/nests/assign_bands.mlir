// RUN: xgpu-opt %s -p 'assign-bands' --split-input-file --verify-diagnostics | FileCheck %s

// Blocks run the outermost loop, their threads the ones inside it.
// CHECK-LABEL: func.func @blocks
// CHECK: {band = "thread", called = "t", extent = 32 : i64}
// CHECK: {band = "thread", called = "t", extent = 16 : i64}
// CHECK: {band = "block", called = "r", extent = 64 : i64}
func.func @blocks(%arg0: memref<64x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "part"} : () -> memref<32xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %4 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 31]>} : (memref<64x32xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%4, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 31]>} : (tensor<f32>, memref<32xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "t", extent = 32 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %4 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (d0 + 16), d0 in [0, 15]>} : (memref<32xf32>, index) -> tensor<f32>
        "xgpu.accumulate"(%4, %0, %arg3) {atomic = false, combiner = "add", map = #xgpu.map<(d0) -> (d0), d0 in [0, 15]>} : (tensor<f32>, memref<32xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "t", extent = 16 : i64} : () -> ()
      %1 = "xgpu.read"(%0) {map = #xgpu.map<() -> (0)>} : (memref<32xf32>) -> tensor<f32>
      %2 = "xgpu.read"(%0) {map = #xgpu.map<() -> (1)>} : (memref<32xf32>) -> tensor<f32>
      %3 = stablehlo.add %1, %2 : tensor<f32>
      "xgpu.write"(%3, %arg1, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "r", extent = 64 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Without loops inside, the threads of all blocks share one band.
// CHECK-LABEL: func.func @grid
// CHECK: {band = "grid", called = "j", extent = 64 : i64}
// CHECK: {band = "grid", called = "i", extent = 32 : i64}
func.func @grid(%arg0: memref<64x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<32x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 31], d1 in [0, 63]>} : (memref<64x32xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 31], d1 in [0, 63]>} : (tensor<f32>, memref<32x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "j", extent = 64 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "i", extent = 32 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// A kernel that is no par loop has one block.
// CHECK-LABEL: func.func @one
// CHECK: {band = "thread", called = "t", extent = 32 : i64}
func.func @one(%arg0: memref<32xf32> {xgpu.access = "inout", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.seq"() ({
    ^bb0(%arg1: index):
      "xgpu.par"() ({
      ^bb0(%arg2: index):
        %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
        "xgpu.accumulate"(%cst, %arg0, %arg2) {atomic = false, combiner = "multiply", map = #xgpu.map<(d0) -> (d0), d0 in [0, 31]>} : (tensor<f32>, memref<32xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "t", extent = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "k", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// A program may say who runs a loop; the loops inside follow.
// CHECK-LABEL: func.func @said
// CHECK: {band = "thread", called = "j", extent = 32 : i64}
// CHECK: {band = "block", called = "i", extent = 8 : i64}
func.func @said(%arg0: memref<8x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg1: index):
      "xgpu.par"() ({
      ^bb0(%arg2: index):
        %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %arg0, %arg1, %arg2) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>} : (tensor<f32>, memref<8x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "j", extent = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "i", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Groups of a block's threads have each w, threads of a group the iterations of i: blocks are outside of groups.
// CHECK-LABEL: func.func @groups
// CHECK: {band = "thread", called = "i"
// CHECK: {band = "thread", called = "w", extent = 8 : i64, group = 32 : i64}
// CHECK: {band = "block", called = "b"
func.func @groups(%arg0: memref<32x40xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<32x40xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %0 = "xgpu.read"(%arg0, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 8 + d1, d2), d0 in [0, 3], d1 in [0, 7], d2 in [0, 39]>} : (memref<32x40xf32>, index, index, index) -> tensor<f32>
          "xgpu.write"(%0, %arg1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 8 + d1, d2), d0 in [0, 3], d1 in [0, 7], d2 in [0, 39]>} : (tensor<f32>, memref<32x40xf32>, index, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 40 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "w", extent = 8 : i64, group = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "b", extent = 4 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Groups of all blocks share outermost loops, whatever is inside of them.
// CHECK-LABEL: func.func @outermost
// CHECK: {band = "thread", called = "i"
// CHECK: {band = "thread", called = "i"
// CHECK: {band = "grid", called = "w", extent = 32 : i64, group = 32 : i64}
func.func @outermost(%arg0: memref<32x40xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<32x40xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 31], d1 in [0, 39]>} : (memref<32x40xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 31], d1 in [0, 39]>} : (tensor<f32>, memref<32x40xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "i", extent = 40 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        "xgpu.accumulate"(%cst, %arg1, %arg2, %arg3) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 31], d1 in [0, 39]>} : (tensor<f32>, memref<32x40xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "i", extent = 40 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "w", extent = 32 : i64, group = 32 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
