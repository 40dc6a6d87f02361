// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// A program of loops: buffers are changed in the order of the text, maps say which element an access is to.
// CHECK-LABEL: func.func @program
func.func @program(%a: memref<8x4xf32> {xgpu.access = "in", xgpu.called = "A"},
                   %n: memref<8xi32> {xgpu.access = "in", xgpu.called = "N"},
                   %b: memref<4xf32> {xgpu.access = "inout", xgpu.called = "B"}) {
  // CHECK: "xgpu.launch"() ({
  "xgpu.launch"() ({
    // CHECK-NEXT: "xgpu.par"() ({
    // CHECK-NEXT: ^bb0(%[[I:.*]]: index):
    "xgpu.par"() ({
    ^bb0(%i: index):
      // CHECK-NEXT: %[[SUM:.*]] = "xgpu.new"() {called = "sum", memory = "register"} : () -> memref<f32>
      %sum = "xgpu.new"() {called = "sum", memory = "register"} : () -> memref<f32>
      // CHECK: %[[X:.*]] = "xgpu.read"(%arg0, %[[I]]) {map = #xgpu.map<(d0) -> (d0, 0), d0 in [0, 3]>} : (memref<8x4xf32>, index) -> tensor<f32>
      %x = "xgpu.read"(%a, %i) {map = #xgpu.map<(d0) -> (d0, 0), d0 in [0, 3]>} : (memref<8x4xf32>, index) -> tensor<f32>
      // CHECK-NEXT: "xgpu.write"(%[[X]], %[[SUM]]) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
      "xgpu.write"(%x, %sum) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
      // CHECK-NEXT: "xgpu.seq"() ({
      // CHECK-NEXT: ^bb0(%[[K:.*]]: index):
      "xgpu.seq"() ({
      ^bb0(%k: index):
        // CHECK-NEXT: "xgpu.where"(%[[I]], %[[K]]) ({
        "xgpu.where"(%i, %k) ({
          // CHECK: "xgpu.to_index"(%{{.*}}) {extent = 4 : i64} : (tensor<i32>) -> index
          %m = "xgpu.read"(%n, %k) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>} : (memref<8xi32>, index) -> tensor<i32>
          %j = "xgpu.to_index"(%m) {extent = 4 : i64} : (tensor<i32>) -> index
          %y = "xgpu.read"(%a, %k, %j) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 3]>}
              : (memref<8x4xf32>, index, index) -> tensor<f32>
          // CHECK: "xgpu.accumulate"(%{{.*}}, %[[SUM]]) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>}
          "xgpu.accumulate"(%y, %sum) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>}
              : (tensor<f32>, memref<f32>) -> ()
          "xgpu.yield"() : () -> ()
        }, {
          // CHECK: }, {
          // CHECK-NEXT: %[[D:.*]] = "xgpu.from_index"(%[[I]]) {map = #xgpu.map<(d0) -> (d0 * 2), d0 in [0, 3]>} : (index) -> tensor<i32>
          // CHECK-NEXT: "xgpu.anchor"(%[[D]]) : (tensor<i32>) -> ()
          %d = "xgpu.from_index"(%i) {map = #xgpu.map<(d0) -> (d0 * 2), d0 in [0, 3]>} : (index) -> tensor<i32>
          "xgpu.anchor"(%d) : (tensor<i32>) -> ()
          "xgpu.yield"() : () -> ()
        // CHECK: {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 3], d1 in [0, 7], d0 + d1 in [0, 5]>} : (index, index) -> ()
        }) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 3], d1 in [0, 7], d0 + d1 in [0, 5]>} : (index, index) -> ()
        "xgpu.yield"() : () -> ()
      // CHECK: {called = "k", extent = 8 : i64} : () -> ()
      }) {called = "k", extent = 8 : i64} : () -> ()
      %total = "xgpu.read"(%sum) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
      "xgpu.write"(%total, %b, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : (tensor<f32>, memref<4xf32>, index) -> ()
      "xgpu.yield"() : () -> ()
    // CHECK: {band = "grid", called = "i", extent = 4 : i64, independent = "proved", map = #xgpu.map<(d0, d1) -> (d0), d0 in [0, 31], d1 in [0, 0], d0 in [0, 3]>}
    }) {band = "grid", called = "i", extent = 4 : i64, independent = "proved",
        map = #xgpu.map<(d0, d1) -> (d0), d0 in [0, 31], d1 in [0, 0], d0 in [0, 3]>} : () -> ()
    // CHECK: "xgpu.barrier"() {scope = "block"} : () -> ()
    "xgpu.barrier"() {scope = "block"} : () -> ()
    "xgpu.yield"() : () -> ()
  // CHECK: {block = 32 : i64, grid = 1 : i64} : () -> ()
  }) {block = 32 : i64, grid = 1 : i64} : () -> ()
  return
}
