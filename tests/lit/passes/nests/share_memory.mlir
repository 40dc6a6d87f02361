// RUN: xgpu-opt %s -p 'share-memory' --split-input-file --verify-diagnostics | FileCheck %s

// What follows the second barrier may lie where what the first one ended did; what is between meets both.
// CHECK-LABEL: func.func @chain
// CHECK: {called = "t", memory = "shared", offset = 0 : i64}
// CHECK: {called = "u", memory = "shared", offset = 256 : i64}
// CHECK: {called = "v", memory = "shared", offset = 0 : i64}
// CHECK-COUNT-3: "xgpu.barrier"
// CHECK-NOT: "xgpu.barrier"
func.func @chain(%arg0: memref<2x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<64xf32>
      %1 = "xgpu.new"() {called = "u", memory = "shared"} : () -> memref<64xf32>
      %2 = "xgpu.new"() {called = "v", memory = "shared"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (memref<2x64xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%3, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%1, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %2, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%2, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (tensor<f32>, memref<2x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 2 : i64} : () -> ()
  return
}

// -----

// A step begins with no barrier: other threads may still read what the one before has read last. Nothing is shared.
// CHECK-LABEL: func.func @steps
// CHECK-NOT: offset
func.func @steps(%arg0: memref<8x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<8x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.seq"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<64xf32>
        %1 = "xgpu.new"() {called = "u", memory = "shared"} : () -> memref<64xf32>
        %2 = "xgpu.new"() {called = "v", memory = "shared"} : () -> memref<64xf32>
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %3 = "xgpu.read"(%arg0, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1, d2), d0 in [0, 1], d1 in [0, 3], d2 in [0, 63]>} : (memref<8x64xf32>, index, index, index) -> tensor<f32>
          "xgpu.write"(%3, %0, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
        "xgpu.barrier"() {scope = "block"} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %3 = "xgpu.read"(%0, %arg4) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
          "xgpu.write"(%3, %1, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
        "xgpu.barrier"() {scope = "block"} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %3 = "xgpu.read"(%1, %arg4) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
          "xgpu.write"(%3, %2, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
        "xgpu.barrier"() {scope = "block"} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %3 = "xgpu.read"(%2, %arg4) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
          "xgpu.write"(%3, %arg1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1, d2), d0 in [0, 1], d1 in [0, 3], d2 in [0, 63]>} : (tensor<f32>, memref<8x64xf32>, index, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 4 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 2 : i64} : () -> ()
  return
}

// -----

// Both together are more than a block has: threads wait once more.
// CHECK-LABEL: func.func @big
// CHECK: {called = "t", memory = "shared", offset = 0 : i64}
// CHECK: "xgpu.barrier"
// CHECK: {called = "u", memory = "shared", offset = 0 : i64}
// CHECK-COUNT-2: "xgpu.barrier"
// CHECK-NOT: "xgpu.barrier"
func.func @big(%arg0: memref<2x40000xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2x40000xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "shared"} : () -> memref<40000xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 39999]>} : (memref<2x40000xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%2, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 39999]>} : (tensor<f32>, memref<40000xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 40000 : i64, map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0 * 1024 + s1), d0 in [0, 255], s0 in [0, 39], s1 in [0, 3], d0 + s0 * 256 in [0, 9999]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 39999), d0 in [0, 39999]>} : (memref<40000xf32>, index) -> tensor<f32>
        "xgpu.write"(%2, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 39999]>} : (tensor<f32>, memref<2x40000xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 40000 : i64, map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0 * 1024 + s1), d0 in [0, 255], s0 in [0, 39], s1 in [0, 3], d0 + s0 * 256 in [0, 9999]>} : () -> ()
      %1 = "xgpu.new"() {called = "u", memory = "shared"} : () -> memref<40000xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 39999]>} : (memref<2x40000xf32>, index, index) -> tensor<f32>
        %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
        %3 = stablehlo.multiply %2, %cst : tensor<f32>
        "xgpu.write"(%3, %1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 39999]>} : (tensor<f32>, memref<40000xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 40000 : i64, map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0 * 1024 + s1), d0 in [0, 255], s0 in [0, 39], s1 in [0, 3], d0 + s0 * 256 in [0, 9999]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %2 = "xgpu.read"(%1, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 39999), d0 in [0, 39999]>} : (memref<40000xf32>, index) -> tensor<f32>
        "xgpu.accumulate"(%2, %arg1, %arg2, %arg3) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 39999]>} : (tensor<f32>, memref<2x40000xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 40000 : i64, map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0 * 1024 + s1), d0 in [0, 255], s0 in [0, 39], s1 in [0, 3], d0 + s0 * 256 in [0, 9999]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 256 : i64, grid = 2 : i64} : () -> ()
  return
}

// -----

// What is given may not be in use twice.
func.func @given(%arg0: memref<2x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t", memory = "shared", offset = 0 : i64} : () -> memref<64xf32>
      // expected-error@below {{'u' at byte 128: expected no bytes of 't', which is in use at the same time}}
      %1 = "xgpu.new"() {called = "u", memory = "shared", offset = 128 : i64} : () -> memref<64xf32>
      %2 = "xgpu.new"() {called = "v", memory = "shared"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (memref<2x64xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%3, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%1, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %2, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.barrier"() {scope = "block"} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%2, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1], d1 in [0, 63]>} : (tensor<f32>, memref<2x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {block = 64 : i64, grid = 2 : i64} : () -> ()
  return
}
