// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles --split-input-file --verify-diagnostics | FileCheck %s

// Accumulators of 128 registers leave no room for a second block: all buffers that fit, and one left to products that
// go on. With half of them two blocks multiply in turn, for which ptxas is to leave registers.
// CHECK-LABEL: func.func @alone
// CHECK: {count = 10 : i64, {{.*}}xgpu.prefetch = 2 : i64, xgpu.stages = 4 : i64}
// CHECK-LABEL: func.func @two
// CHECK-SAME: xgpu.resident = 2 : i64
// CHECK: {count = 10 : i64, {{.*}}xgpu.stages = 3 : i64}
// CHECK-LABEL: func.func @given
// CHECK: {count = 10 : i64, {{.*}}xgpu.prefetch = 1 : i64, xgpu.stages = 3 : i64}
func.func @alone(%x: tensor<128x640xbf16>, %w: tensor<640x256xbf16>, %out: tensor<128x256xf32>) -> tensor<128x256xf32> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 256>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<128x256xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<128x256xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<128x256xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 64 + s1), d0 in [0, 9], s0 in [0, 127], s1 in [0, 63]>} : (tensor<128x640xbf16>, index) -> tensor<128x64xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 64 + s0, s1), d0 in [0, 9], s0 in [0, 63], s1 in [0, 255]>} : (tensor<640x256xbf16>, index) -> tensor<64x256xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x256xbf16>) -> tensor<128x256xf32>
      %next = stablehlo.add %sum, %p : tensor<128x256xf32>
      "xgpu.yield"(%next) : (tensor<128x256xf32>) -> ()
    }) {count = 10 : i64} : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 255]>} : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    "xgpu.yield"(%u) : (tensor<128x256xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<128x256xf32>) -> tensor<128x256xf32>
  return %r : tensor<128x256xf32>
}
func.func @two(%x: tensor<128x640xbf16>, %w: tensor<640x128xbf16>, %out: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 256>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<128x128xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<128x128xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<128x128xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 64 + s1), d0 in [0, 9], s0 in [0, 127], s1 in [0, 63]>} : (tensor<128x640xbf16>, index) -> tensor<128x64xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 64 + s0, s1), d0 in [0, 9], s0 in [0, 63], s1 in [0, 127]>} : (tensor<640x128xbf16>, index) -> tensor<64x128xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xf32>
      %next = stablehlo.add %sum, %p : tensor<128x128xf32>
      "xgpu.yield"(%next) : (tensor<128x128xf32>) -> ()
    }) {count = 10 : i64} : (tensor<128x128xf32>) -> tensor<128x128xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 127]>} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
    "xgpu.yield"(%u) : (tensor<128x128xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}
func.func @given(%x: tensor<128x640xbf16>, %w: tensor<640x128xbf16>, %out: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 256>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<128x128xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<128x128xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<128x128xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 64 + s1), d0 in [0, 9], s0 in [0, 127], s1 in [0, 63]>} : (tensor<128x640xbf16>, index) -> tensor<128x64xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 64 + s0, s1), d0 in [0, 9], s0 in [0, 63], s1 in [0, 127]>} : (tensor<640x128xbf16>, index) -> tensor<64x128xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xf32>
      %next = stablehlo.add %sum, %p : tensor<128x128xf32>
      "xgpu.yield"(%next) : (tensor<128x128xf32>) -> ()
    }) {count = 10 : i64, xgpu.prefetch = 1 : i64} : (tensor<128x128xf32>) -> tensor<128x128xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 127]>} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
    "xgpu.yield"(%u) : (tensor<128x128xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}

// -----

func.func @beyond(%x: tensor<128x640xbf16>, %w: tensor<640x128xbf16>, %out: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 256>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<128x128xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<128x128xf32>
    // expected-error @below {{attribute 'xgpu.prefetch': expected at most 2 steps, with 3 buffers, got 3}}
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<128x128xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 64 + s1), d0 in [0, 9], s0 in [0, 127], s1 in [0, 63]>} : (tensor<128x640xbf16>, index) -> tensor<128x64xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 64 + s0, s1), d0 in [0, 9], s0 in [0, 63], s1 in [0, 127]>} : (tensor<640x128xbf16>, index) -> tensor<64x128xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xf32>
      %next = stablehlo.add %sum, %p : tensor<128x128xf32>
      "xgpu.yield"(%next) : (tensor<128x128xf32>) -> ()
    }) {count = 10 : i64, xgpu.prefetch = 3 : i64, xgpu.stages = 3 : i64} : (tensor<128x128xf32>) -> tensor<128x128xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 127]>} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
    "xgpu.yield"(%u) : (tensor<128x128xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}
