// RUN: xgpu-opt %s -p 'place-buffers' --split-input-file --verify-diagnostics | FileCheck %s

// Outside of kernels global memory, of a block shared memory, and registers of a thread; and of all threads of a block
// where these compute the same.
// CHECK-LABEL: func.func @place
// CHECK: {called = "all", memory = "scratch"}
// CHECK: {called = "tile", memory = "shared"}
// CHECK: {called = "count", memory = "register"}
// CHECK: {called = "own", memory = "register"}
func.func @place(%arg0: memref<64x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  %0 = "xgpu.new"() {called = "all"} : () -> memref<64xf32>
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %1 = "xgpu.new"() {called = "tile"} : () -> memref<32xf32>
      %2 = "xgpu.new"() {called = "count"} : () -> memref<f32>
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      "xgpu.write"(%cst, %2) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.new"() {called = "own"} : () -> memref<2xf32>
        "xgpu.seq"() ({
        ^bb0(%arg4: index):
          %7 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 31]>} : (memref<64x32xf32>, index, index) -> tensor<f32>
          "xgpu.write"(%7, %3, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 1]>} : (tensor<f32>, memref<2xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 2 : i64} : () -> ()
        %4 = "xgpu.read"(%3) {map = #xgpu.map<() -> (0)>} : (memref<2xf32>) -> tensor<f32>
        %5 = "xgpu.read"(%2) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        %6 = stablehlo.multiply %4, %5 : tensor<f32>
        "xgpu.write"(%6, %1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 31]>} : (tensor<f32>, memref<32xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "t", extent = 32 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%1, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 31), d0 in [0, 31]>} : (memref<32xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 31]>} : (tensor<f32>, memref<64x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "t", extent = 32 : i64} : () -> ()
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      "xgpu.write"(%cst_0, %0, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "r", extent = 64 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @too_many(%n: memref<4xi32>, %x: tensor<f32>) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%i: index):
      // expected-error @+1 {{'own' of a thread: expected at most 64 elements at indices that are known when}}
      %own = "xgpu.new"() {called = "own"} : () -> memref<4xf32>
      "xgpu.write"(%x, %own, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : (tensor<f32>, memref<4xf32>, index) -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 4 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @not_there(%x: tensor<f32>) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%i: index):
      // expected-error @+1 {{'own': expected #register where it is made, got #scratch}}
      %own = "xgpu.new"() {called = "own", memory = "scratch"} : () -> memref<f32>
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 4 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Maps decide about a buffer of which each iteration has its own element, but for one that is to be in registers.
// CHECK-LABEL: func.func @either
// CHECK: "xgpu.new"() {called = "t"}
// CHECK: "xgpu.new"() {called = "u", memory = "shared"}
// CHECK: "xgpu.new"() {called = "v", memory = "threads"}
func.func @either(%arg0: memref<64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t"} : () -> memref<64xf32>
      %1 = "xgpu.new"() {called = "u"} : () -> memref<64xf32>
      %2 = "xgpu.new"() {called = "v", memory = "register"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%arg0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%3, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        %4 = "xgpu.read"(%arg0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%4, %1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        %5 = "xgpu.read"(%arg0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%5, %2, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %3 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        %4 = "xgpu.read"(%1, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        %5 = stablehlo.add %3, %4 : tensor<f32>
        %6 = "xgpu.read"(%2, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        %7 = stablehlo.add %5, %6 : tensor<f32>
        "xgpu.write"(%7, %arg1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
