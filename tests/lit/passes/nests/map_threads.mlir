// RUN: xgpu-opt %s -p 'map-threads' --split-input-file --verify-diagnostics | FileCheck %s

// Rows are contiguous: consecutive threads go along them, whichever loop is outside, and take four elements each.
// CHECK-LABEL: func.func @turned
// CHECK: {band = "grid", called = "j", extent = 1024 : i64, map = #xgpu.map<(d0, d1)[s0] -> (d0 * 4 + s0 + (d1 mod 2) * 512, d1 floordiv 2), d0 in [0, 127], d1 in [0, 1023], s0 in [0, 3]>}
// CHECK: {block = 128 : i64, grid = 1024 : i64}
func.func @turned(%arg0: memref<512x1024xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<512x1024xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 1023], d1 in [0, 511]>} : (memref<512x1024xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 1023], d1 in [0, 511]>} : (tensor<f32>, memref<512x1024xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "grid", called = "i", extent = 512 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "j", extent = 1024 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// The threads that the program asks for: here the last ones have one element, the first two.
// CHECK-LABEL: func.func @asked
// CHECK: {band = "thread", called = "j", extent = 100 : i64, map = #xgpu.map<(d0)[s0] -> (d0 + s0 * 64), d0 in [0, 63], s0 in [0, 1], d0 + s0 * 64 in [0, 99]>}
// CHECK: {band = "block", called = "i", extent = 8 : i64, map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>, threads = 64 : i64}
// CHECK: {block = 64 : i64, grid = 8 : i64}
func.func @asked(%arg0: memref<8x100xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<8x100xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 99]>} : (memref<8x100xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 7], d1 in [0, 99]>} : (tensor<f32>, memref<8x100xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "j", extent = 100 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "i", extent = 8 : i64, threads = 64 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// What all rows read again and again comes from a cache, so that it counts nothing: threads go along rows.
// CHECK-LABEL: func.func @small
// CHECK: {band = "grid", called = "i", extent = 64 : i64, map = #xgpu.map<(d0, d1) -> (d1 floordiv 4, d0 + (d1 mod 4) * 128), d0 in [0, 127], d1 in [0, 255]>}
func.func @small(%arg0: memref<64x512xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<512xf32> {xgpu.access = "in", xgpu.called = "w"}, %arg2: memref<64x512xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.read"(%arg0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 511]>} : (memref<64x512xf32>, index, index) -> tensor<f32>
        %1 = "xgpu.read"(%arg1, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 511]>} : (memref<512xf32>, index) -> tensor<f32>
        %2 = stablehlo.multiply %0, %1 : tensor<f32>
        "xgpu.write"(%2, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 511]>} : (tensor<f32>, memref<64x512xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "grid", called = "j", extent = 512 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 64 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}