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

// -----

// Iterations that run at once have the lanes of a warp, warps the others.
// CHECK-LABEL: func.func @at_once
// CHECK: map = #xgpu.map<(d0, d1) -> (d1 * 4 + d0 floordiv 32, d0 mod 32), d0 in [0, 127], d1 in [0, 2], d0 + d1 * 128 in [0, 319]>}
// CHECK: {block = 128 : i64, grid = 3 : i64}
func.func @at_once(%arg0: memref<10x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<10x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 31]>} : (memref<10x32xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 31]>} : (tensor<f32>, memref<10x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {align = 32 : i64, band = "grid", called = "l", extent = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "w", extent = 10 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Fewer of them, aligned to a warp, leave its other lanes free.
// CHECK-LABEL: func.func @aligned
// CHECK: map = #xgpu.map<(d0, d1) -> (d1 * 4 + d0 floordiv 32, d0 mod 32), d0 in [0, 127], d1 in [0, 2], d0 in [0, 103], d0 + d1 * 128 in [0, 319], d0 mod 32 in [0, 7]>}
func.func @aligned(%arg0: memref<10x8xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<10x8xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 7]>} : (memref<10x8xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 7]>} : (tensor<f32>, memref<10x8xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {align = 32 : i64, band = "grid", called = "l", extent = 8 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "w", extent = 10 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// A block has as many threads as run at once.
// CHECK-LABEL: func.func @wide
// CHECK: map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 511], d1 in [0, 9]>}
// CHECK: {block = 512 : i64, grid = 10 : i64}
func.func @wide(%arg0: memref<10x512xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<10x512xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 511]>} : (memref<10x512xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 511]>} : (tensor<f32>, memref<10x512xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {align = 32 : i64, band = "grid", called = "l", extent = 512 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "w", extent = 10 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @threads_that_do_not_fit(%arg0: memref<10x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<10x64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      // expected-error @+1 {{'#threads(96)': expected a multiple of 64, as many as a 'fully par' takes side by side}}
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 63]>} : (memref<10x64xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 63]>} : (tensor<f32>, memref<10x64xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {align = 64 : i64, band = "grid", called = "l", extent = 64 : i64, threads = 96 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "w", extent = 10 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @vectors_longer_than_the_device_has(%arg0: memref<128xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<128xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    // expected-error @+1 {{'#vector(8)': sm_90a accesses at most 4 f32 at once}}
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.read"(%arg0, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 127]>} : (memref<128xf32>, index) -> tensor<f32>
      "xgpu.write"(%0, %arg1, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 127]>} : (tensor<f32>, memref<128xf32>, index) -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 128 : i64, vector = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @vectors_of_no_width(%arg0: memref<126xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<126xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    // expected-error @+1 {{'#vector(3)': expected a power of two}}
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.read"(%arg0, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 125]>} : (memref<126xf32>, index) -> tensor<f32>
      "xgpu.write"(%0, %arg1, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 125]>} : (tensor<f32>, memref<126xf32>, index) -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 126 : i64, vector = 3 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @runs_of_threads(%arg0: memref<10x32xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<10x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    // expected-error @+1 {{'#vector(2)': each iteration of 'fully par l' has a thread of its own}}
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %0 = "xgpu.read"(%arg0, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 31]>} : (memref<10x32xf32>, index, index) -> tensor<f32>
        "xgpu.write"(%0, %arg1, %arg2, %arg3) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 9], d1 in [0, 31]>} : (tensor<f32>, memref<10x32xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {align = 32 : i64, band = "grid", called = "l", extent = 32 : i64, vector = 2 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "w", extent = 10 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// A thread goes through boxes of a product together: an element of A, or of B, is read for four sums. Larger boxes would
// leave the GPU's schedulers less than three warps each.
// CHECK-LABEL: func.func @together
// CHECK: {band = "grid", called = "j", extent = 1024 : i64, together = 4 : i64}
// CHECK: {band = "grid", called = "i", extent = 1024 : i64, map = #xgpu.map<(d0, d1)[s0, s1] -> ({{.*}}), d0 in [0, 127], d1 in [0, 511], s0 in [0, 3], s1 in [0, 3]>, together = 4 : i64}
func.func @together(%arg0: memref<1024x512xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<512x1024xf32> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<1024x1024xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "sum", memory = "register"} : () -> memref<f32>
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          %3 = "xgpu.read"(%arg0, %arg3, %arg5) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1023], d1 in [0, 511]>} : (memref<1024x512xf32>, index, index) -> tensor<f32>
          %4 = "xgpu.read"(%arg1, %arg4, %arg5) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 1023], d1 in [0, 511]>} : (memref<512x1024xf32>, index, index) -> tensor<f32>
          %5 = stablehlo.multiply %3, %4 : tensor<f32>
          "xgpu.accumulate"(%5, %0) {atomic = false, combiner = "add", map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 512 : i64} : () -> ()
        %2 = "xgpu.read"(%0) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
        "xgpu.write"(%2, %arg2, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 1023], d1 in [0, 1023]>} : (tensor<f32>, memref<1024x1024xf32>, index, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "grid", called = "j", extent = 1024 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "i", extent = 1024 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// The box that the program asks for.
// CHECK-LABEL: func.func @asked_for_a_box
// CHECK: {band = "grid", called = "j", extent = 32 : i64, map = #xgpu.map<(d0, d1)[s0] -> (d0 * 4 + s0), d0 in [0, 127], d1 in [0, 0], s0 in [0, 3], d0 in [0, 7]>, together = 4 : i64}
func.func @asked_for_a_box(%arg0: memref<8x32xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg1: index):
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      "xgpu.write"(%cst, %arg0, %arg1) {map = #xgpu.map<(d0) -> (d0 floordiv 8, d0 mod 8), d0 in [0, 31]>} : (tensor<f32>, memref<8x32xf32>, index) -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "grid", called = "j", extent = 32 : i64, together = 4 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Each w is one of 32 threads side by side, which share the iterations of i.
// CHECK-LABEL: func.func @groups
// CHECK: map = #xgpu.map<(d0)[s0] -> (d0 floordiv 32, s0 * 32 + d0 mod 32), d0 in [0, 255], s0 in [0, 1], s0 * 32 + d0 mod 32 in [0, 39]>
// CHECK: {block = 256 : i64, grid = 4 : i64}
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
        }) {band = "thread", called = "i", extent = 40 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "w", extent = 8 : i64, group = 32 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 4 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
