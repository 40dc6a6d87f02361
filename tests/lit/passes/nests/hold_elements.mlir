// RUN: xgpu-opt %s -p 'hold-elements' --split-input-file --verify-diagnostics | FileCheck %s

// The sum is held in a register: read before the loop, written after it. Where elements differ, nothing is.
// CHECK-LABEL: func.func @hold
// CHECK:         "xgpu.write"(%{{.*}}, %arg1, %[[I:[^)]*]])
// CHECK-NEXT:    %[[HELD:.*]] = "xgpu.new"() {called = "held_C"} : () -> memref<f32>
// CHECK-NEXT:    %[[BEFORE:.*]] = "xgpu.read"(%arg1, %[[I]])
// CHECK-NEXT:    "xgpu.write"(%[[BEFORE]], %[[HELD]])
// CHECK-NEXT:    "xgpu.seq"() ({
// CHECK:           "xgpu.accumulate"(%{{.*}}, %[[HELD]]) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>}
// CHECK:         %[[AFTER:.*]] = "xgpu.read"(%[[HELD]])
// CHECK-NEXT:    "xgpu.write"(%[[AFTER]], %arg1, %[[I]])
// CHECK-NEXT:    "xgpu.seq"() ({
// CHECK:           "xgpu.accumulate"(%{{.*}}, %arg2
func.func @hold(%arg0: memref<64x80xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64xf32> {xgpu.access = "out", xgpu.called = "C"}, %arg2: memref<64xf32> {xgpu.access = "inout", xgpu.called = "D"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      "xgpu.write"(%cst, %arg1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
      "xgpu.seq"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.read"(%arg0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 79]>} : (memref<64x80xf32>, index, index) -> tensor<f32>
        "xgpu.accumulate"(%0, %arg1, %arg3) {atomic = false, combiner = "add", map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 80 : i64} : () -> ()
      "xgpu.seq"() ({
      ^bb0(%arg4: index):
        %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        "xgpu.accumulate"(%cst_0, %arg2, %arg3, %arg4) {atomic = true, combiner = "add", map = #xgpu.map<(d0, d1) -> ((d0 + d1) mod 64), d0 in [0, 63], d1 in [0, 62]>} : (tensor<f32>, memref<64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 63 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 64 : i64, independent = "proved"} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// A condition of the loop makes no difference: the element is held, and has its own value where nothing is added.
// CHECK-LABEL: func.func @conditional
// CHECK:         %[[HELD:.*]] = "xgpu.new"() {called = "held_C"} : () -> memref<f32>
// CHECK-NEXT:    "xgpu.read"(%arg1, %{{[^)]*}}) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>}
// CHECK:         "xgpu.seq"() ({
// CHECK:           "xgpu.where"
// CHECK:             "xgpu.accumulate"(%{{.*}}, %[[HELD]]) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>}
// CHECK:         "xgpu.write"(%{{.*}}, %arg1, %{{[^)]*}}) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>}
func.func @conditional(%arg0: memref<64x80xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      "xgpu.write"(%cst, %arg1, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
      "xgpu.seq"() ({
      ^bb0(%arg3: index):
        "xgpu.where"(%arg2, %arg3) ({
          %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63], d0 - d1 in [0, 63]>} : (memref<64x80xf32>, index, index) -> tensor<f32>
          "xgpu.accumulate"(%0, %arg1, %arg2, %arg3) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0), d0 in [0, 63], d1 in [0, 63], d0 - d1 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }, {
          "xgpu.yield"() : () -> ()
        }) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 63], d1 in [0, 79], -d0 + d1 in [-63, 0]>} : (index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 80 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 64 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Elements of a block's buffer that nobody writes are not read: those beyond the condition have no value.
// CHECK-LABEL: func.func @partly
// CHECK-NOT: held
func.func @partly(%arg0: memref<4x64x80xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<4x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "t"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.where"(%arg3) ({
          %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
          "xgpu.write"(%cst, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 29]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }, {
          "xgpu.yield"() : () -> ()
        }) {map = #xgpu.map<(d0) -> (), d0 in [0, 63], d0 in [0, 29]>} : (index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.seq"() ({
        ^bb0(%arg4: index):
          "xgpu.where"(%arg3) ({
            %1 = "xgpu.read"(%arg0, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1, d2) -> (d0, d1, d2), d0 in [0, 3], d1 in [0, 29], d2 in [0, 79]>} : (memref<4x64x80xf32>, index, index, index) -> tensor<f32>
            "xgpu.accumulate"(%1, %0, %arg3) {atomic = false, combiner = "add", map = #xgpu.map<(d0) -> (d0), d0 in [0, 29]>} : (tensor<f32>, memref<64xf32>, index) -> ()
            "xgpu.yield"() : () -> ()
          }, {
            "xgpu.yield"() : () -> ()
          }) {map = #xgpu.map<(d0) -> (), d0 in [0, 63], d0 in [0, 29]>} : (index) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 80 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        "xgpu.where"(%arg3) ({
          %1 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (-d0 + 29), d0 in [0, 29]>} : (memref<64xf32>, index) -> tensor<f32>
          "xgpu.write"(%1, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 3], d1 in [0, 29]>} : (tensor<f32>, memref<4x64xf32>, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }, {
          %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
          "xgpu.write"(%cst, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 3], d1 in [30, 63]>} : (tensor<f32>, memref<4x64xf32>, index, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {map = #xgpu.map<(d0) -> (), d0 in [0, 63], d0 in [0, 29]>} : (index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 4 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
