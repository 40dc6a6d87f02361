// RUN: xgpu-opt %s -p 'stage-reads' --split-input-file --verify-diagnostics | FileCheck %s

// The program asks for tiles. They do not divide i: what is beyond its end is computed from zeros, and not written.
// CHECK-LABEL: func.func @tiles
// CHECK: [[S:%.*]] = "xgpu.new"() {called = "s", memory = "register"} : () -> memref<8x4xf32>
// CHECK: "xgpu.write"({{%.*}}, [[S]], {{%.*}}, {{%.*}})
// CHECK: "xgpu.where"({{%.*}}, {{%.*}}) ({
// CHECK: "xgpu.write"({{%.*}}, [[S]], {{%.*}}, {{%.*}})
// CHECK: {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 2], d1 in [0, 7], d0 * 8 + d1 in [0, 19]>}

// A step of 16 copies what it reads of A and B; rows of the tiles go along i and j.
// CHECK: "xgpu.seq"() ({
// CHECK: [[A:%.*]] = "xgpu.new"() {called = "A_tile"} : () -> memref<16x8xf32>
// CHECK: "xgpu.read"(%arg0, {{.*}}) {map = #xgpu.map<(d0, d1, d2, d3) -> (d2 * 8 + d3, d0 * 16 + d1),
// CHECK: "xgpu.write"({{%.*}}, [[A]], {{%.*}}, {{%.*}}) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 15], d1 in [0, 7]>}
// CHECK: stablehlo.constant dense<0.000000e+00>
// CHECK: "xgpu.write"({{%.*}}, [[A]], {{%.*}}, {{%.*}})
// CHECK: [[B:%.*]] = "xgpu.new"() {called = "B_tile"} : () -> memref<16x4xf32>
// CHECK-NOT: "xgpu.where"
// CHECK: "xgpu.write"({{%.*}}, [[B]], {{%.*}}, {{%.*}})
// CHECK: "xgpu.seq"() ({
// CHECK: "xgpu.read"([[A]], {{%.*}}, {{%.*}}) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 15], d1 in [0, 7]>}
// CHECK: "xgpu.read"([[B]], {{%.*}}, {{%.*}}) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 15], d1 in [0, 3]>}
// CHECK: "xgpu.accumulate"({{%.*}}, [[S]], {{%.*}}, {{%.*}})
// CHECK: {called = "k", extent = 16 : i64}
// CHECK: {called = "j", extent = 4 : i64, independent = "proved"}
// CHECK: {called = "k_step", extent = 1 : i64}

// The rest of k is a step of its own.
// CHECK: "xgpu.new"() {called = "A_tile"} : () -> memref<8x8xf32>
// CHECK: "xgpu.read"(%arg0, {{.*}}) {map = #xgpu.map<(d0, d1, d2, d3) -> (d2 * 8 + d3, d0 * 8 + d1 + 16),
// CHECK: {called = "k", extent = 8 : i64}
// CHECK: {called = "j_tile", extent = 3 : i64, independent = "proved"}
// CHECK: {called = "i_tile", extent = 3 : i64, independent = "proved"}
func.func @tiles(%arg0: memref<20x24xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<12x24xf32> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<20x12xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "s"} : () -> memref<f32>
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          %2 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 19], d1 in [0, 23]>} : (memref<20x24xf32>, index, index) -> tensor<f32>
          %3 = "xgpu.read"(%arg1, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 11], d1 in [0, 23]>} : (memref<12x24xf32>, index, index) -> tensor<f32>
          %4 = stablehlo.multiply %2, %3 : tensor<f32>
          "xgpu.accumulate"(%4, %0) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 24 : i64, tile = 16 : i64} : () -> ()
        %1 = "xgpu.read"(%0) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        "xgpu.write"(%1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 19], d1 in [0, 11]>} : (tensor<f32>, memref<20x12xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "j", extent = 12 : i64, independent = "proved", tile = 4 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "i", extent = 20 : i64, independent = "proved", tile = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// So few iterations are no work for the whole device.
// CHECK-LABEL: func.func @few
// CHECK-NOT: A_tile
func.func @few(%arg0: memref<20x24xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<12x24xf32> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<20x12xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "s"} : () -> memref<f32>
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          %2 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 19], d1 in [0, 23]>} : (memref<20x24xf32>, index, index) -> tensor<f32>
          %3 = "xgpu.read"(%arg1, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 11], d1 in [0, 23]>} : (memref<12x24xf32>, index, index) -> tensor<f32>
          %4 = stablehlo.multiply %2, %3 : tensor<f32>
          "xgpu.accumulate"(%4, %0) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 24 : i64} : () -> ()
        %1 = "xgpu.read"(%0) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        "xgpu.write"(%1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 19], d1 in [0, 11]>} : (tensor<f32>, memref<20x12xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "j", extent = 12 : i64, independent = "proved"} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "i", extent = 20 : i64, independent = "proved"} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Rows read by rows of neighbours: tiles of 64 by 64 iterations, and lines of memory a step.
// CHECK-LABEL: func.func @chosen
// CHECK: "xgpu.new"() {called = "A_tile"} : () -> memref<32x64xf32>
// CHECK: "xgpu.new"() {called = "B_tile"} : () -> memref<32x64xf32>
// CHECK: {called = "k_step", extent = 64 : i64}
func.func @chosen(%arg0: memref<2048x2048xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2048x2048xf32> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<2048x2048xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "s"} : () -> memref<f32>
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          %2 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 2047], d1 in [0, 2047]>} : (memref<2048x2048xf32>, index, index) -> tensor<f32>
          %3 = "xgpu.read"(%arg1, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 2047], d1 in [0, 2047]>} : (memref<2048x2048xf32>, index, index) -> tensor<f32>
          %4 = stablehlo.multiply %2, %3 : tensor<f32>
          "xgpu.accumulate"(%4, %0) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 2048 : i64} : () -> ()
        %1 = "xgpu.read"(%0) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        "xgpu.write"(%1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 2047], d1 in [0, 2047]>} : (tensor<f32>, memref<2048x2048xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "j", extent = 2048 : i64, independent = "proved"} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "i", extent = 2048 : i64, independent = "proved"} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @left
// CHECK-NOT: A_tile
func.func @left(%arg0: memref<2048x2048xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<2048x2048xf32> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<2048x2048xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "s"} : () -> memref<f32>
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          %2 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 2047], d1 in [0, 2047]>} : (memref<2048x2048xf32>, index, index) -> tensor<f32>
          %3 = "xgpu.read"(%arg1, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 2047], d1 in [0, 2047]>} : (memref<2048x2048xf32>, index, index) -> tensor<f32>
          %4 = stablehlo.multiply %2, %3 : tensor<f32>
          "xgpu.accumulate"(%4, %0) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 2048 : i64, tile = 0 : i64} : () -> ()
        %1 = "xgpu.read"(%0) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        "xgpu.write"(%1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 2047], d1 in [0, 2047]>} : (tensor<f32>, memref<2048x2048xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "j", extent = 2048 : i64, independent = "proved"} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "i", extent = 2048 : i64, independent = "proved"} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @bad(%arg0: memref<20x24xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<12x24xf32> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<20x12xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "s"} : () -> memref<f32>
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        // expected-error @+1 {{'#tile(16)' on 'k': the program says itself who runs 'par i'}}
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          %2 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 19], d1 in [0, 23]>} : (memref<20x24xf32>, index, index) -> tensor<f32>
          %3 = "xgpu.read"(%arg1, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 11], d1 in [0, 23]>} : (memref<12x24xf32>, index, index) -> tensor<f32>
          %4 = stablehlo.multiply %2, %3 : tensor<f32>
          "xgpu.accumulate"(%4, %0) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 24 : i64, tile = 16 : i64} : () -> ()
        %1 = "xgpu.read"(%0) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        "xgpu.write"(%1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 19], d1 in [0, 11]>} : (tensor<f32>, memref<20x12xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "j", extent = 12 : i64, independent = "proved", tile = 4 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "i", extent = 20 : i64, independent = "proved", threads = 64 : i64, tile = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
