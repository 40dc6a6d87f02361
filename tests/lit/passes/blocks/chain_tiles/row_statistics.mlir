// RUN: xgpu-opt %s -p assign-products,chain-tiles --split-input-file | FileCheck %s

// Warps have whole rows, so what is reduced of these stays in registers, what is computed of that, too, and what is
// computed of elements with it: nothing but the operands is in shared memory. Rows of two products are the same.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-3: "xgpu.tile"{{.*}}xgpu.place = "shared"
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "fragments"}
// CHECK: stablehlo.broadcast_in_dim {{.*}}{xgpu.place = "computed"}
// CHECK: stablehlo.subtract {{.*}}{xgpu.place = "fragments"}
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "fragments"}
// CHECK: stablehlo.rsqrt {{.*}}{xgpu.place = "fragments"}
// CHECK-NOT: xgpu.place = "shared"
// CHECK: "xgpu.insert_tile"
func.func @rows(%x: tensor<64x32xbf16>, %w: tensor<32x48xbf16>, %v: tensor<48x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 47]>} : (tensor<32x48xbf16>) -> tensor<32x48xbf16>
    %c = "xgpu.tile"(%v) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 47], s1 in [0, 63]>} : (tensor<48x64xbf16>) -> tensor<48x64xbf16>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x48xbf16>) -> tensor<64x48xf32>
    %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<64x48xf32>, tensor<f32>) -> tensor<64xf32>
    %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x48xf32>
    %d = stablehlo.subtract %p, %n : tensor<64x48xf32>
    %e = stablehlo.exponential %d : tensor<64x48xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x48xf32>, tensor<f32>) -> tensor<64xf32>
    %g = stablehlo.rsqrt %s : tensor<64xf32>
    %h = stablehlo.convert %e : (tensor<64x48xf32>) -> tensor<64x48xbf16>
    %q = stablehlo.dot_general %h, %c, contracting_dims = [1] x [0] : (tensor<64x48xbf16>, tensor<48x64xbf16>) -> tensor<64x64xf32>
    %t = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
    %o = stablehlo.multiply %q, %t : tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%o, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// Warps multiply 32 rows, and would have half of each for less work, but nothing would stay in registers then.
// CHECK-LABEL: func.func @by_warps
// CHECK: stablehlo.dot_general {{.*}}{xgpu.place = "fragments", xgpu.product = "mma", xgpu.warps = array<i64: 2, 1>}
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "fragments"}
func.func @by_warps(%x: tensor<32x32xbf16>, %w: tensor<32x32xbf16>, %v: tensor<32x64xbf16>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<32x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %c = "xgpu.tile"(%v) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
    %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
    %d = stablehlo.subtract %p, %n : tensor<32x32xf32>
    %e = stablehlo.exponential %d : tensor<32x32xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %g = stablehlo.rsqrt %s : tensor<32xf32>
    %h = stablehlo.convert %e : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %q = stablehlo.dot_general %h, %c, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x64xbf16>) -> tensor<32x64xf32>
    %t = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
    %o = stablehlo.multiply %q, %t : tensor<32x64xf32>
    %u = "xgpu.insert_tile"(%o, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    "xgpu.yield"(%u) : (tensor<32x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// Rows that warps share: two of four would have nothing to do.
// CHECK-LABEL: func.func @shared_rows
// CHECK: stablehlo.dot_general {{.*}}xgpu.warps = array<i64: 2, 2>}
// CHECK: stablehlo.convert {{.*}}{xgpu.place = "shared"}
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "shared"}
func.func @shared_rows(%x: tensor<32x32xbf16>, %w: tensor<32x32xbf16>, %v: tensor<32x64xbf16>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<32x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %c = "xgpu.tile"(%v) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
    %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
    %d = stablehlo.subtract %p, %n : tensor<32x32xf32>
    %e = stablehlo.exponential %d : tensor<32x32xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %g = stablehlo.rsqrt %s : tensor<32xf32>
    %h = stablehlo.convert %e : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %q = stablehlo.dot_general %h, %c, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x64xbf16>) -> tensor<32x64xf32>
    %t = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
    %o = stablehlo.multiply %q, %t : tensor<32x64xf32>
    %u = "xgpu.insert_tile"(%o, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    "xgpu.yield"(%u) : (tensor<32x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// Of 20 columns threads have some twice.
// CHECK-LABEL: func.func @columns
// CHECK: stablehlo.convert {{.*}}{xgpu.place = "shared"}
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "shared"}
func.func @columns(%x: tensor<32x32xbf16>, %w: tensor<32x20xbf16>, %v: tensor<20x64xbf16>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<32x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 19]>} : (tensor<32x20xbf16>) -> tensor<32x20xbf16>
    %c = "xgpu.tile"(%v) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 19], s1 in [0, 63]>} : (tensor<20x64xbf16>) -> tensor<20x64xbf16>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x20xbf16>) -> tensor<32x20xf32>
    %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<32x20xf32>, tensor<f32>) -> tensor<32xf32>
    %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x20xf32>
    %d = stablehlo.subtract %p, %n : tensor<32x20xf32>
    %e = stablehlo.exponential %d : tensor<32x20xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x20xf32>, tensor<f32>) -> tensor<32xf32>
    %g = stablehlo.rsqrt %s : tensor<32xf32>
    %h = stablehlo.convert %e : (tensor<32x20xf32>) -> tensor<32x20xbf16>
    %q = stablehlo.dot_general %h, %c, contracting_dims = [1] x [0] : (tensor<32x20xbf16>, tensor<20x64xbf16>) -> tensor<32x64xf32>
    %t = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
    %o = stablehlo.multiply %q, %t : tensor<32x64xf32>
    %u = "xgpu.insert_tile"(%o, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    "xgpu.yield"(%u) : (tensor<32x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}
