// RUN: xgpu-opt %s -p 'serialize-inner-loops' --split-input-file --verify-diagnostics | FileCheck %s

// A thread that has an iteration of i runs those of j and l one after the other; the buffer stays its own.
// CHECK-LABEL: func.func @inner
// CHECK: "xgpu.par"
// CHECK: xgpu.new
// CHECK: "xgpu.seq"
// CHECK: "xgpu.seq"
// CHECK: "xgpu.yield"
// CHECK: }) {called = "l", extent = 2 : i64}
// CHECK: }) {called = "j", extent = 4 : i64}
// CHECK: {band = "thread", called = "i", extent = 32 : i64}
func.func @inner(%arg0: memref<8x32x4x2xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg1: index):
      "xgpu.par"() ({
      ^bb0(%arg2: index):
        %0 = "xgpu.new"() {called = "r"} : () -> memref<f32>
        %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
        "xgpu.par"() ({
        ^bb0(%arg3: index):
          "xgpu.par"() ({
          ^bb0(%arg4: index):
            %1 = "xgpu.read"(%0) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
            "xgpu.write"(%1, %arg0, %arg1, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2, d3) -> (d0, d1, d2, d3), d0 in [0, 7], d1 in [0, 31], d2 in [0, 3], d3 in [0, 1]>} : (tensor<f32>, memref<8x32x4x2xf32>, index, index, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {band = "thread", called = "l", extent = 2 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "j", extent = 4 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Loops of one band are not inside of its iterations.
// CHECK-LABEL: func.func @band
// CHECK-NOT: xgpu.seq
func.func @band(%arg0: memref<8x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg1: index):
      "xgpu.par"() ({
      ^bb0(%arg2: index):
        %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %arg0, %arg1, %arg2) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>} : (tensor<f32>, memref<8x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "j", extent = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "thread", called = "i", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @at_once(%arg0: memref<8x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg1: index):
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      // expected-error @+1 {{'fully par l' inside an iteration of a thread: expected it to be the only thing in the loop around it}}
      "xgpu.par"() ({
      ^bb0(%arg2: index):
        "xgpu.write"(%cst, %arg0, %arg1, %arg2) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>} : (tensor<f32>, memref<8x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {align = 32 : i64, band = "thread", called = "l", extent = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "thread", called = "w", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @asked(%arg0: memref<8x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg1: index):
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      // expected-error @+1 {{'#vector(4)': a thread runs 'par j' alone, inside an iteration}}
      "xgpu.par"() ({
      ^bb0(%arg2: index):
        "xgpu.write"(%cst, %arg0, %arg1, %arg2) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 31]>} : (tensor<f32>, memref<8x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "j", extent = 32 : i64, vector = 4 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "thread", called = "i", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
