// RUN: xgpu-opt %s -p assign-products,chain-tiles --split-input-file | FileCheck %s

// What a left operand of warp groups is computed from, and what is computed with that, is where it is multiplied.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[WIDE:.*]] = stablehlo.convert {{.*}}{xgpu.place = "fragments"}
// CHECK: stablehlo.multiply %[[WIDE]], %{{.*}} {xgpu.place = "fragments"}
// CHECK: stablehlo.convert {{.*}}{xgpu.place = "fragments"} : {{.*}}bf16
// CHECK: stablehlo.dot_general {{.*}}xgpu.place = "fragments", xgpu.product = "wgmma"
// CHECK: stablehlo.multiply %[[WIDE]], %[[WIDE]] {xgpu.place = "fragments"}
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "fragments"}
func.func @scaled(%x: tensor<64x32xbf16>, %w: tensor<32x64xbf16>, %s: tensor<32xf32>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    %c = "xgpu.tile"(%s) {map = #xgpu.map<()[s0] -> (s0), s0 in [0, 31]>} : (tensor<32xf32>) -> tensor<32xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %wide = stablehlo.convert %a : (tensor<64x32xbf16>) -> tensor<64x32xf32>
    %columns = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<32xf32>) -> tensor<64x32xf32>
    %scaled = stablehlo.multiply %wide, %columns : tensor<64x32xf32>
    %left = stablehlo.convert %scaled : (tensor<64x32xf32>) -> tensor<64x32xbf16>
    %p = stablehlo.dot_general %left, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
    %squares = stablehlo.multiply %wide, %wide : tensor<64x32xf32>
    %sums = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
    %rows = stablehlo.broadcast_in_dim %sums, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
    %y = stablehlo.divide %p, %rows : tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%y, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// Right operands are read from shared memory, and so is a tile that is both.
// CHECK-LABEL: func.func @both
// CHECK: stablehlo.negate {{.*}}{xgpu.place = "shared"}
// CHECK: stablehlo.dot_general {{.*}}xgpu.product = "wgmma"
func.func @both(%x: tensor<64x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %n = stablehlo.negate %a : tensor<64x64xbf16>
    %p = stablehlo.dot_general %n, %n, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
