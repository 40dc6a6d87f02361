// RUN: xgpu-opt %s -p check-independence --split-input-file --verify-diagnostics | FileCheck %s

// Different indices of one loop; elements that a value decides stay open.
// CHECK-LABEL: func.func @rows
// CHECK: {called = "i", extent = 8 : i64, independent = "proved"}
// CHECK: {called = "n", extent = 8 : i64, independent = "unproved"}
func.func @rows(%b: memref<64xf32>, %n: memref<8xi32>, %x: tensor<f32>) {
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.seq"() ({
    ^bb0(%k: index):
      "xgpu.write"(%x, %b, %i, %k) {map = #xgpu.map<(d0, d1) -> (d0 * 8 + d1), d0 in [0, 7], d1 in [0, 7]>} : (tensor<f32>, memref<64xf32>, index, index) -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "k", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 8 : i64} : () -> ()
  "xgpu.par"() ({
  ^bb0(%i: index):
    %m = "xgpu.read"(%n, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>} : (memref<8xi32>, index) -> tensor<i32>
    %j = "xgpu.to_index"(%m) {extent = 64 : i64} : (tensor<i32>) -> index
    "xgpu.write"(%x, %b, %j) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
    "xgpu.yield"() : () -> ()
  }) {called = "n", extent = 8 : i64} : () -> ()
  return
}

// -----

// Single steps do not count against each other, and conditions are taken into account.
// CHECK-LABEL: func.func @apart
// CHECK: {called = "i", extent = 8 : i64, independent = "proved"}
func.func @apart(%b: memref<64xf32>, %x: tensor<f32>) {
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.accumulate"(%x, %b) {atomic = true, combiner = "add", map = #xgpu.map<() -> (5)>} : (tensor<f32>, memref<64xf32>) -> ()
    "xgpu.where"(%i) ({
      "xgpu.write"(%x, %b) {map = #xgpu.map<() -> (7)>} : (tensor<f32>, memref<64xf32>) -> ()
      "xgpu.yield"() : () -> ()
    }, {
      "xgpu.yield"() : () -> ()
    }) {map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [3, 3]>} : (index) -> ()
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 8 : i64} : () -> ()
  return
}

// -----

func.func @neighbours(%b: memref<9xf32> {xgpu.access = "inout", xgpu.called = "B"}) {
  "xgpu.par"() ({
  ^bb0(%i: index):
    // expected-error @+1 {{iterations of par 'i' are not independent: i = 0 reads B[1], which i = 1 changes at}}
    %x = "xgpu.read"(%b, %i) {map = #xgpu.map<(d0) -> (d0 + 1), d0 in [0, 7]>} : (memref<9xf32>, index) -> tensor<f32>
    "xgpu.write"(%x, %b, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>} : (tensor<f32>, memref<9xf32>, index) -> ()
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 8 : i64} : () -> ()
  return
}
