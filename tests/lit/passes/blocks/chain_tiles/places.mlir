// RUN: xgpu-opt %s -p chain-tiles | FileCheck %s
// RUN: xgpu-opt %s -p chain-tiles,chain-tiles | FileCheck %s
// RUN: xgpu-opt %s -p chain-tiles --remarks 2>&1 | FileCheck %s --check-prefix=REMARK

// What follows a product is computed on its accumulators, and products read shared memory. A tile that a broadcast reads
// several times is kept, the broadcast is not. What other threads need of a product is in shared memory, and so is what
// steps carry of that; a place that a person has given stays.
// CHECK-LABEL: func.func @k
// CHECK: stablehlo.constant {xgpu.place = "computed"}
// CHECK: "xgpu.tile"{{.*}}xgpu.place = "shared"
// CHECK: "xgpu.tile"{{.*}}xgpu.place = "shared"
// CHECK: stablehlo.dot_general {{.*}}{xgpu.place = "fragments", xgpu.warps = array<i64: 2, 2>}
// CHECK: stablehlo.add {{.*}}{xgpu.place = "fragments"}
// CHECK: {count = 3 : i64, xgpu.place = ["fragments"]}
// CHECK: "xgpu.tile"{{.*}}xgpu.place = "shared"
// CHECK: stablehlo.broadcast_in_dim {{.*}}{xgpu.place = "computed"}
// CHECK: stablehlo.add {{.*}}{xgpu.place = "fragments"}
// CHECK: stablehlo.tanh {{.*}}{xgpu.place = "fragments"}
// CHECK: stablehlo.convert {{.*}}{xgpu.place = "fragments"}
// CHECK-LABEL: func.func @row_max
// CHECK: stablehlo.dot_general {{.*}}{xgpu.place = "fragments", xgpu.warps = array<i64: 2, 1>}
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "fragments"}
// CHECK: stablehlo.maximum {{.*}}{xgpu.place = "fragments"}
// CHECK: {count = 3 : i64, xgpu.place = ["fragments"]}
// CHECK: stablehlo.dot_general {{.*}}{xgpu.place = "shared",
// CHECK: stablehlo.convert {{.*}}{xgpu.place = "shared"} : tensor<32xf32>
// CHECK: stablehlo.subtract {{.*}}{xgpu.place = "computed"}
// CHECK-LABEL: func.func @both
// CHECK: %[[P:.*]] = stablehlo.dot_general {{.*}}{xgpu.place = "fragments"
// CHECK: %[[E:.*]] = stablehlo.exponential %[[P]] {xgpu.place = "fragments"}
// CHECK: %[[C:.*]] = stablehlo.convert %[[E]] {xgpu.place = "shared"} : tensor<32x32xf32>
// CHECK: stablehlo.reduce(%[[C]]
// CHECK: "xgpu.insert_tile"(%[[E]]
// CHECK-LABEL: func.func @column_max
// CHECK: stablehlo.dot_general {{.*}}{xgpu.place = "shared"
// CHECK: stablehlo.reduce{{.*}}{xgpu.place = "shared"}

// REMARK: chain-tiles: the tile is kept in shared memory: a product reads it
// REMARK: chain-tiles: the tile is kept in shared memory: what reads it needs elements that other threads have computed
func.func @k(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %0 = "xgpu.blocks"(%arg3) ({
  ^bb0(%i: index, %j: index, %out: tensor<64x64xbf16>):
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<32x32xf32>
    %1 = "xgpu.steps"(%cst) ({
    ^bb0(%s: index, %acc: tensor<32x32xf32>):
      %7 = "xgpu.tile"(%arg0, %i, %j, %s) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
      %8 = "xgpu.tile"(%arg1, %i, %j, %s) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
      %9 = stablehlo.dot_general %7, %8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %10 = stablehlo.add %acc, %9 : tensor<32x32xf32>
      "xgpu.yield"(%10) : (tensor<32x32xf32>) -> ()
    }) {count = 3 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %2 = "xgpu.tile"(%arg2, %i, %j) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>} : (tensor<64xf32>, index, index) -> tensor<32xf32>
    %b = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<32xf32>) -> tensor<32x32xf32>
    %3 = stablehlo.add %1, %b : tensor<32x32xf32>
    %4 = stablehlo.tanh %3 : tensor<32x32xf32>
    %5 = stablehlo.convert %4 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %6 = "xgpu.insert_tile"(%5, %out, %i, %j) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
    "xgpu.yield"(%6) : (tensor<64x64xbf16>) -> ()
  }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

func.func @row_max(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x32xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>) attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
  %0:2 = "xgpu.blocks"(%arg2, %arg3) ({
  ^bb0(%i: index, %rows: tensor<64xf32>, %out: tensor<64x32xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<32xf32>
    %1 = "xgpu.steps"(%low) ({
    ^bb0(%s: index, %m: tensor<32xf32>):
      %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %x = "xgpu.tile"(%arg0, %i, %s) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 31], s1 in [0, 31]>} : (tensor<64x96xbf16>, index, index) -> tensor<32x32xbf16>
      %w = "xgpu.tile"(%arg1, %i, %s) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d1 * 32 + s0, s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 31], s1 in [0, 31]>} : (tensor<96x32xbf16>, index, index) -> tensor<32x32xbf16>
      %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %r = stablehlo.reduce(%p init: %init) applies stablehlo.maximum across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
      %n = stablehlo.maximum %m, %r : tensor<32xf32>
      "xgpu.yield"(%n) : (tensor<32xf32>) -> ()
    }) {count = 3 : i64} : (tensor<32xf32>) -> tensor<32xf32>
    %t = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<64x96xbf16>, index) -> tensor<32x32xbf16>
    %u = "xgpu.tile"(%arg1, %i) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<96x32xbf16>, index) -> tensor<32x32xbf16>
    %q = stablehlo.dot_general %t, %u, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.place = "shared"} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
    %b = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
    %d = stablehlo.subtract %q, %b : tensor<32x32xf32>
    %2 = "xgpu.insert_tile"(%1, %rows, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 32 + s0), d0 in [0, 1], s0 in [0, 31]>} : (tensor<32xf32>, tensor<64xf32>, index) -> tensor<64xf32>
    %3 = "xgpu.insert_tile"(%d, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xf32>, tensor<64x32xf32>, index) -> tensor<64x32xf32>
    "xgpu.yield"(%2, %3) : (tensor<64xf32>, tensor<64x32xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<64xf32>, tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64x32xf32>
}

// Accumulators are read where they are, and by a reduction of columns, which gets a copy.

func.func @both(%arg0: tensor<64x32xbf16>, %arg1: tensor<32x32xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>) attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
  %0:2 = "xgpu.blocks"(%arg2, %arg3) ({
  ^bb0(%i: index, %rows: tensor<64xf32>, %out: tensor<64x32xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<64x32xbf16>, index) -> tensor<32x32xbf16>
    %w = "xgpu.tile"(%arg1, %i) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, index) -> tensor<32x32xbf16>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
    %e = stablehlo.exponential %p : tensor<32x32xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %1 = "xgpu.insert_tile"(%r, %rows, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 32 + s0), d0 in [0, 1], s0 in [0, 31]>} : (tensor<32xf32>, tensor<64xf32>, index) -> tensor<64xf32>
    %2 = "xgpu.insert_tile"(%e, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xf32>, tensor<64x32xf32>, index) -> tensor<64x32xf32>
    "xgpu.yield"(%1, %2) : (tensor<64xf32>, tensor<64x32xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<64xf32>, tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64x32xf32>
}

func.func @column_max(%arg0: tensor<64x32xbf16>, %arg1: tensor<32x32xbf16>, %arg2: tensor<64xf32>) -> tensor<64xf32> attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
  %0 = "xgpu.blocks"(%arg2) ({
  ^bb0(%i: index, %rows: tensor<64xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<64x32xbf16>, index) -> tensor<32x32xbf16>
    %w = "xgpu.tile"(%arg1, %i) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, index) -> tensor<32x32xbf16>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %1 = "xgpu.insert_tile"(%r, %rows, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 32 + s0), d0 in [0, 1], s0 in [0, 31]>} : (tensor<32xf32>, tensor<64xf32>, index) -> tensor<64xf32>
    "xgpu.yield"(%1) : (tensor<64xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
