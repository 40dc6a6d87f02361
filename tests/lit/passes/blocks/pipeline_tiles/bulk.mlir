// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles | FileCheck %s
// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles{target=sm_80} | FileCheck %s --check-prefix=OTHER

// TMA copies boxes, where there are several buffers and enough steps. Rows of 40 elements are no boxes, whose rows
// follow each other without gaps; blocks of clusters, and a way that is given, keep copies by threads.
// CHECK-LABEL: func.func @many
// CHECK: "xgpu.tile"(%arg0{{.*}}xgpu.copy = "bulk"
// CHECK: "xgpu.tile"(%arg1{{.*}}xgpu.copy = "bulk"
// CHECK-LABEL: func.func @few
// CHECK-NOT: "bulk"
// CHECK-LABEL: func.func @padded
// CHECK: "xgpu.tile"(%arg0{{.*}}xgpu.copy = "async"
// CHECK: "xgpu.tile"(%arg1{{.*}}xgpu.copy = "bulk"
// CHECK-LABEL: func.func @given
// CHECK: "xgpu.tile"(%arg0{{.*}}xgpu.copy = "plain"
// CHECK: "xgpu.tile"(%arg1{{.*}}xgpu.copy = "bulk"
// CHECK-LABEL: func.func @cluster
// CHECK-NOT: "bulk"
// OTHER-NOT: "bulk"
func.func @many(%x: tensor<64x280xbf16>, %w: tensor<280x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<64x64xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<64x64xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 32 + s1), d0 in [0, 8], s0 in [0, 63], s1 in [0, 31], d0 * 32 + s1 in [0, 279]>} : (tensor<64x280xbf16>, index) -> tensor<64x32xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 8], s0 in [0, 31], s1 in [0, 63], d0 * 32 + s0 in [0, 279]>} : (tensor<280x64xbf16>, index) -> tensor<32x64xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
      %next = stablehlo.add %sum, %p : tensor<64x64xf32>
      "xgpu.yield"(%next) : (tensor<64x64xf32>) -> ()
    }) {count = 9 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
func.func @few(%x: tensor<64x120xbf16>, %w: tensor<120x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<64x64xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<64x64xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 32 + s1), d0 in [0, 3], s0 in [0, 63], s1 in [0, 31], d0 * 32 + s1 in [0, 119]>} : (tensor<64x120xbf16>, index) -> tensor<64x32xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 3], s0 in [0, 31], s1 in [0, 63], d0 * 32 + s0 in [0, 119]>} : (tensor<120x64xbf16>, index) -> tensor<32x64xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
      %next = stablehlo.add %sum, %p : tensor<64x64xf32>
      "xgpu.yield"(%next) : (tensor<64x64xf32>) -> ()
    }) {count = 4 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
func.func @padded(%x: tensor<64x280xbf16>, %w: tensor<280x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<64x64xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<64x64xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 32 + s1), d0 in [0, 8], s0 in [0, 63], s1 in [0, 31], d0 * 32 + s1 in [0, 279]>, xgpu.layout = array<i64: 40, 1>} : (tensor<64x280xbf16>, index) -> tensor<64x32xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 8], s0 in [0, 31], s1 in [0, 63], d0 * 32 + s0 in [0, 279]>} : (tensor<280x64xbf16>, index) -> tensor<32x64xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
      %next = stablehlo.add %sum, %p : tensor<64x64xf32>
      "xgpu.yield"(%next) : (tensor<64x64xf32>) -> ()
    }) {count = 9 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
func.func @given(%x: tensor<64x280xbf16>, %w: tensor<280x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<64x64xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<64x64xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 32 + s1), d0 in [0, 8], s0 in [0, 63], s1 in [0, 31], d0 * 32 + s1 in [0, 279]>, xgpu.copy = "plain"} : (tensor<64x280xbf16>, index) -> tensor<64x32xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 8], s0 in [0, 31], s1 in [0, 63], d0 * 32 + s0 in [0, 279]>} : (tensor<280x64xbf16>, index) -> tensor<32x64xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
      %next = stablehlo.add %sum, %p : tensor<64x64xf32>
      "xgpu.yield"(%next) : (tensor<64x64xf32>) -> ()
    }) {count = 9 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
func.func @cluster(%x: tensor<64x280xbf16>, %w: tensor<280x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.cluster = array<i64: 1, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<64x64xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<64x64xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 32 + s1), d0 in [0, 8], s0 in [0, 63], s1 in [0, 31], d0 * 32 + s1 in [0, 279]>} : (tensor<64x280xbf16>, index) -> tensor<64x32xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 8], s0 in [0, 31], s1 in [0, 63], d0 * 32 + s0 in [0, 279]>} : (tensor<280x64xbf16>, index) -> tensor<32x64xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
      %next = stablehlo.add %sum, %p : tensor<64x64xf32>
      "xgpu.yield"(%next) : (tensor<64x64xf32>) -> ()
    }) {count = 9 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
