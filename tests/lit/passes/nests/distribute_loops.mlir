// RUN: xgpu-opt %s -p 'distribute-loops' --split-input-file --verify-diagnostics | FileCheck %s

// A group has each w. Its buffers have an element for each w; what was read before it changes is kept in one of them.
// CHECK-LABEL: func.func @f
// CHECK: [[T:%.*]] = "xgpu.new"() {called = "t"} : () -> memref<8x32xf32>
// CHECK: [[S:%.*]] = "xgpu.new"() {called = "s"} : () -> memref<8xf32>

// The first thread of the group writes s; the loop over k is the block's, and what is in it a band.
// CHECK: "xgpu.par"() ({
// CHECK: "xgpu.par"() ({
// CHECK: "xgpu.where"([[LANE:%.*]]) ({
// CHECK: "xgpu.write"({{%.*}}, [[S]], {{%.*}})
// CHECK: {map = #xgpu.map<(d0) -> (), d0 in [0, 31], d0 in [0, 0]>}
// CHECK: {align = 32 : i64, band = "thread", called = "lane", extent = 32 : i64, independent = "proved"}
// CHECK: {band = "thread", called = "w", extent = 8 : i64, group = 32 : i64}
// CHECK: "xgpu.seq"() ({
// CHECK: "xgpu.write"({{%.*}}, [[T]], {{%.*}}, {{%.*}}) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>}
// CHECK: {align = 32 : i64, band = "thread", called = "l", extent = 32 : i64}
// CHECK: {band = "thread", called = "w", extent = 8 : i64, group = 32 : i64}
// CHECK: {called = "k", extent = 4 : i64}
// CHECK: [[KEPT:%.*]] = "xgpu.new"() {called = "s"} : () -> memref<8xf32>
// CHECK: "xgpu.write"({{%.*}}, [[S]], {{%.*}})
// CHECK: "xgpu.write"({{%.*}}, [[KEPT]], {{%.*}})

// A condition on w is one of each iteration.
// CHECK: "xgpu.par"() ({
// CHECK: "xgpu.par"() ({
// CHECK: "xgpu.where"({{%.*}}) ({
// CHECK: "xgpu.read"([[T]], {{%.*}}, {{%.*}}) {map = #xgpu.map<(d0, d1) -> (d0, -d1 + 31), d0 in [0, 7], d1 in [0, 31]>}
// CHECK: "xgpu.read"([[KEPT]], {{%.*}})
// CHECK: {map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 3]>}
// CHECK: {band = "thread", called = "i", extent = 32 : i64}
// CHECK: {band = "thread", called = "w", extent = 8 : i64, group = 32 : i64}
func.func @f(%arg0: memref<8x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<8x32xf32> {xgpu.access = "out", xgpu.called = "B"}, %arg2: memref<8xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "t"} : () -> memref<32xf32>
        %1 = "xgpu.new"() {called = "s"} : () -> memref<f32>
        %2 = "xgpu.read"(%arg0, %arg4) {map = #xgpu.map<(d0) -> (d0, 0), d0 in [0, 7]>} : (memref<8x32xf32>, index) -> tensor<f32>
        "xgpu.write"(%2, %1) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %6 = "xgpu.read"(%arg0, %arg4, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>} : (memref<8x32xf32>, index, index) -> tensor<f32>
            %7 = "xgpu.read"(%1) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
            %8 = stablehlo.multiply %6, %7 : tensor<f32>
            "xgpu.write"(%8, %0, %arg6) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 31]>} : (tensor<f32>, memref<32xf32>, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {align = 32 : i64, band = "thread", called = "l", extent = 32 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 4 : i64} : () -> ()
        %3 = "xgpu.read"(%1) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
        %4 = stablehlo.multiply %3, %cst : tensor<f32>
        %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        "xgpu.write"(%cst_0, %1) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        "xgpu.where"(%arg4) ({
          "xgpu.par"() ({
          ^bb0(%arg5: index):
            %6 = "xgpu.read"(%0, %arg5) {map = #xgpu.map<(d0) -> (-d0 + 31), d0 in [0, 31]>} : (memref<32xf32>, index) -> tensor<f32>
            %7 = stablehlo.add %6, %4 : tensor<f32>
            "xgpu.write"(%7, %arg1, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 3], d1 in [0, 31]>} : (tensor<f32>, memref<8x32xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {band = "thread", called = "i", extent = 32 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }, {
          "xgpu.yield"() : () -> ()
        }) {map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 3]>} : (index) -> ()
        %5 = "xgpu.read"(%1) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        "xgpu.write"(%5, %arg2, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>} : (tensor<f32>, memref<8xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "w", extent = 8 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Blocks of four groups share ten iterations.
// CHECK-LABEL: func.func @turns
// CHECK: memref<4x32xf32>
// CHECK: "xgpu.where"([[BLOCK:%.*]], [[ROW:%.*]]) ({
// CHECK: {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 2], d1 in [0, 3], d0 * 4 + d1 in [0, 9]>}
// CHECK: {band = "thread", called = "row", extent = 4 : i64, group = 32 : i64, threads = 128 : i64}
// CHECK: {band = "block", called = "block", extent = 3 : i64}
func.func @turns(%arg0: memref<10x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<10x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t"} : () -> memref<32xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %1 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 31]>} : (memref<10x32xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%1, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 31]>} : (tensor<f32>, memref<32xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 32 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %1 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 31), d0 in [0, 31]>} : (memref<32xf32>, index) -> tensor<f32>
        "xgpu.write"(%1, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 31]>} : (tensor<f32>, memref<10x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "row", extent = 10 : i64, group = 32 : i64, threads = 128 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @wide(%arg0: memref<8x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<8x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.seq"() ({
        ^bb0(%arg4: index):
          // expected-error @+1 {{'fully par l' takes 64 threads, got groups of 32}}
          "xgpu.par"() ({
          ^bb0(%arg5: index):
            %0 = "xgpu.read"(%arg0, %arg2, %arg3, %arg5) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1, d2), d0 in [0, 1], d1 in [0, 3], d2 in [0, 63]>} : (memref<8x64xf32>, index, index, index) -> tensor<f32>
            "xgpu.write"(%0, %arg1, %arg2, %arg3, %arg5) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1, d2), d0 in [0, 1], d1 in [0, 3], d2 in [0, 63]>} : (tensor<f32>, memref<8x64xf32>, index, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {align = 64 : i64, band = "thread", called = "l", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 2 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "w", extent = 4 : i64, group = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 2 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @twice(%arg0: memref<8x8xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<8x8xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.seq"() ({
        ^bb0(%arg4: index):
          // expected-error @+1 {{'#group(8)': 'par l' is inside of an iteration that a group has}}
          "xgpu.par"() ({
          ^bb0(%arg5: index):
            %0 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 7]>} : (memref<8x8xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%0, %arg1, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 7]>} : (tensor<f32>, memref<8x8xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {band = "thread", called = "l", extent = 8 : i64, group = 8 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 1 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "w", extent = 8 : i64, group = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @vector(%arg0: memref<8x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<8x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      // expected-error @+1 {{'#vector(2)': a group of threads has each iteration of 'par w'}}
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.seq"() ({
        ^bb0(%arg4: index):
          "xgpu.par"() ({
          ^bb0(%arg5: index):
            %0 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>} : (memref<8x32xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%0, %arg1, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>} : (tensor<f32>, memref<8x32xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {align = 32 : i64, band = "thread", called = "l", extent = 32 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 1 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "w", extent = 8 : i64, vector = 2 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
