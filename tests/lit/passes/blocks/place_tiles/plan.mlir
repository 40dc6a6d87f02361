// RUN: xgpu-opt %s -p place-tiles | FileCheck %s
// RUN: xgpu-opt %s -p place-tiles,place-tiles | FileCheck %s
// RUN: xgpu-opt %s -p place-tiles --remarks 2>&1 | FileCheck %s --check-prefix=REMARK

// Tiles that are copied ahead have three buffers of 2048 bytes each. What is used only before the steps, or in a part of
// them, shares memory with what is used after a meeting of all threads. An offset that is given stays.
// CHECK-LABEL: func.func @k
// CHECK: "xgpu.tile"(%arg2{{.*}}xgpu.offset = 12288 : i64
// CHECK: "xgpu.tile"{{.*}}xgpu.offset = 0 : i64
// CHECK: "xgpu.tile"{{.*}}xgpu.offset = 6144 : i64
// CHECK: {count = 3 : i64, xgpu.place = ["fragments"], xgpu.stages = 3 : i64}
// CHECK-LABEL: func.func @row_max
// CHECK: stablehlo.maximum %{{.*}}xgpu.offset = [[CARRIED:[0-9]+]] : i64
// CHECK: xgpu.offset = array<i64: [[CARRIED]]>
// CHECK-LABEL: func.func @given
// CHECK: "xgpu.tile"(%arg2{{.*}}xgpu.offset = 256 : i64

// REMARK: place-tiles: 12416 bytes of shared memory; at least 12416
func.func @k(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %0 = "xgpu.blocks"(%arg3) ({
  ^bb0(%arg4: index, %arg5: index, %arg6: tensor<64x64xbf16>):
    %1 = "xgpu.tile"(%arg2, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>, xgpu.copy = "async", xgpu.layout = array<i64: 1>, xgpu.place = "shared"} : (tensor<64xf32>, index, index) -> tensor<32xf32>
    %cst = stablehlo.constant {xgpu.place = "computed"} dense<0.000000e+00> : tensor<32x32xf32>
    %2 = "xgpu.steps"(%cst) ({
    ^bb0(%arg7: index, %arg8: tensor<32x32xf32>):
      %8 = "xgpu.tile"(%arg0, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.barrier, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
      %9 = "xgpu.tile"(%arg1, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
      %10 = stablehlo.dot_general %8, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.place = "fragments", xgpu.warps = array<i64: 2, 2>} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %11 = stablehlo.add %arg8, %10 {xgpu.place = "fragments"} : tensor<32x32xf32>
      "xgpu.yield"(%11) : (tensor<32x32xf32>) -> ()
    }) {count = 3 : i64, xgpu.place = ["fragments"], xgpu.stages = 3 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [1] {xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32x32xf32>
    %4 = stablehlo.add %2, %3 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %5 = stablehlo.tanh %4 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %6 = stablehlo.convert %5 {xgpu.place = "fragments"} : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %7 = "xgpu.insert_tile"(%6, %arg6, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
    "xgpu.yield"(%7) : (tensor<64x64xbf16>) -> ()
  }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

func.func @row_max(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x32xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>) attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
  %0:2 = "xgpu.blocks"(%arg2, %arg3) ({
  ^bb0(%arg4: index, %arg5: tensor<64xf32>, %arg6: tensor<64x32xf32>):
    %1 = "xgpu.tile"(%arg0, %arg4) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<64x96xbf16>, index) -> tensor<32x32xbf16>
    %2 = "xgpu.tile"(%arg1, %arg4) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<96x32xbf16>, index) -> tensor<32x32xbf16>
    %cst = stablehlo.constant {xgpu.place = "computed"} dense<0xFF800000> : tensor<32xf32>
    %3 = "xgpu.steps"(%cst) ({
    ^bb0(%arg7: index, %arg8: tensor<32xf32>):
      %9 = "xgpu.tile"(%arg1, %arg4, %arg7) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d1 * 32 + s0, s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<96x32xbf16>, index, index) -> tensor<32x32xbf16>
      %10 = "xgpu.tile"(%arg0, %arg4, %arg7) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.barrier, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<64x96xbf16>, index, index) -> tensor<32x32xbf16>
      %11 = stablehlo.dot_general %10, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.warps = array<i64: 2, 1>} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %cst_0 = stablehlo.constant {xgpu.place = "computed"} dense<0xFF800000> : tensor<f32>
      %12 = stablehlo.reduce(%11 init: %cst_0) applies stablehlo.maximum across dimensions = [1] {xgpu.barrier, xgpu.layout = array<i64: 1>, xgpu.place = "shared"} : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
      %13 = stablehlo.maximum %arg8, %12 {xgpu.barrier, xgpu.layout = array<i64: 1>, xgpu.place = "shared"} : tensor<32xf32>
      "xgpu.yield"(%13) : (tensor<32xf32>) -> ()
    }) {count = 3 : i64, xgpu.layout = [array<i64: 1>], xgpu.place = ["shared"], xgpu.stages = 3 : i64} : (tensor<32xf32>) -> tensor<32xf32>
    %4 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.warps = array<i64: 2, 1>} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
    %5 = "xgpu.insert_tile"(%3, %arg5, %arg4) {map = #xgpu.map<(d0)[s0] -> (d0 * 32 + s0), d0 in [0, 1], s0 in [0, 31]>, xgpu.barrier} : (tensor<32xf32>, tensor<64xf32>, index) -> tensor<64xf32>
    %6 = stablehlo.broadcast_in_dim %3, dims = [0] {xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32x32xf32>
    %7 = stablehlo.subtract %4, %6 {xgpu.place = "computed"} : tensor<32x32xf32>
    %8 = "xgpu.insert_tile"(%7, %arg6, %arg4) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xf32>, tensor<64x32xf32>, index) -> tensor<64x32xf32>
    "xgpu.yield"(%5, %8) : (tensor<64xf32>, tensor<64x32xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<64xf32>, tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64x32xf32>
}

func.func @given(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %0 = "xgpu.blocks"(%arg3) ({
  ^bb0(%arg4: index, %arg5: index, %arg6: tensor<64x64xbf16>):
    %1 = "xgpu.tile"(%arg2, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>, xgpu.copy = "async", xgpu.layout = array<i64: 1>, xgpu.offset = 256 : i64, xgpu.place = "shared"} : (tensor<64xf32>, index, index) -> tensor<32xf32>
    %cst = stablehlo.constant {xgpu.place = "computed"} dense<0.000000e+00> : tensor<32x32xf32>
    %2 = "xgpu.steps"(%cst) ({
    ^bb0(%arg7: index, %arg8: tensor<32x32xf32>):
      %8 = "xgpu.tile"(%arg0, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.barrier, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
      %9 = "xgpu.tile"(%arg1, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
      %10 = stablehlo.dot_general %8, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.place = "fragments", xgpu.warps = array<i64: 2, 2>} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %11 = stablehlo.add %arg8, %10 {xgpu.place = "fragments"} : tensor<32x32xf32>
      "xgpu.yield"(%11) : (tensor<32x32xf32>) -> ()
    }) {count = 3 : i64, xgpu.place = ["fragments"], xgpu.stages = 3 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [1] {xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32x32xf32>
    %4 = stablehlo.add %2, %3 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %5 = stablehlo.tanh %4 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %6 = stablehlo.convert %5 {xgpu.place = "fragments"} : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %7 = "xgpu.insert_tile"(%6, %arg6, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
    "xgpu.yield"(%7) : (tensor<64x64xbf16>) -> ()
  }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}
