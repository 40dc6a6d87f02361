// RUN: xgpu-opt %s -p pipeline-tiles | FileCheck %s
// RUN: xgpu-opt %s -p pipeline-tiles,pipeline-tiles | FileCheck %s
// RUN: xgpu-opt %s -p pipeline-tiles --remarks 2>&1 | FileCheck %s --check-prefix=REMARK

// Each 16 bytes of the tiles are 16 of the arrays; steps have as many buffers as there are steps, up to four. The tile
// whose rows begin at any element is copied by loads and stores. Stages that are given stay.
// CHECK-LABEL: func.func @k
// CHECK: "xgpu.tile"{{.*}}xgpu.copy = "async"
// CHECK: "xgpu.tile"{{.*}}xgpu.copy = "async"
// CHECK: {count = 3 : i64, {{.*}}xgpu.stages = 3 : i64}
// CHECK: "xgpu.tile"{{.*}}xgpu.copy = "async"
// CHECK-LABEL: func.func @given
// CHECK: {count = 3 : i64, {{.*}}xgpu.stages = 2 : i64}
// CHECK-LABEL: func.func @turned
// CHECK: "xgpu.tile"{{.*}}xgpu.copy = "plain"

// REMARK: pipeline-tiles: 3 buffers: 3 steps, tiles of {{[0-9]+}} bytes of shared memory with 3 buffers
// REMARK: pipeline-tiles: the tile is copied by 8 bytes: its rows are no multiple of 16 bytes
// REMARK: pipeline-tiles: the tile is not copied asynchronously: its elements are no neighbours in the array
func.func @k(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %0 = "xgpu.blocks"(%arg3) ({
  ^bb0(%arg4: index, %arg5: index, %arg6: tensor<64x64xbf16>):
    %cst = stablehlo.constant {xgpu.place = "computed"} dense<0.000000e+00> : tensor<32x32xf32>
    %1 = "xgpu.steps"(%cst) ({
    ^bb0(%arg7: index, %arg8: tensor<32x32xf32>):
      %8 = "xgpu.tile"(%arg0, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared"} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
      %9 = "xgpu.tile"(%arg1, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared"} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
      %10 = stablehlo.dot_general %8, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.place = "fragments", xgpu.warps = array<i64: 2, 2>} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %11 = stablehlo.add %arg8, %10 {xgpu.place = "fragments"} : tensor<32x32xf32>
      "xgpu.yield"(%11) : (tensor<32x32xf32>) -> ()
    }) {count = 3 : i64, xgpu.place = ["fragments"]} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %2 = "xgpu.tile"(%arg2, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>, xgpu.layout = array<i64: 1>, xgpu.place = "shared"} : (tensor<64xf32>, index, index) -> tensor<32xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [1] {xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32x32xf32>
    %4 = stablehlo.add %1, %3 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %5 = stablehlo.tanh %4 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %6 = stablehlo.convert %5 {xgpu.place = "fragments"} : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %7 = "xgpu.insert_tile"(%6, %arg6, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
    "xgpu.yield"(%7) : (tensor<64x64xbf16>) -> ()
  }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

func.func @given(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %0 = "xgpu.blocks"(%arg3) ({
  ^bb0(%arg4: index, %arg5: index, %arg6: tensor<64x64xbf16>):
    %cst = stablehlo.constant {xgpu.place = "computed"} dense<0.000000e+00> : tensor<32x32xf32>
    %1 = "xgpu.steps"(%cst) ({
    ^bb0(%arg7: index, %arg8: tensor<32x32xf32>):
      %8 = "xgpu.tile"(%arg0, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared"} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
      %9 = "xgpu.tile"(%arg1, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared"} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
      %10 = stablehlo.dot_general %8, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.place = "fragments", xgpu.warps = array<i64: 2, 2>} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %11 = stablehlo.add %arg8, %10 {xgpu.place = "fragments"} : tensor<32x32xf32>
      "xgpu.yield"(%11) : (tensor<32x32xf32>) -> ()
    }) {count = 3 : i64, xgpu.stages = 2 : i64, xgpu.place = ["fragments"]} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %2 = "xgpu.tile"(%arg2, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>, xgpu.layout = array<i64: 1>, xgpu.place = "shared"} : (tensor<64xf32>, index, index) -> tensor<32xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [1] {xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32x32xf32>
    %4 = stablehlo.add %1, %3 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %5 = stablehlo.tanh %4 {xgpu.place = "fragments"} : tensor<32x32xf32>
    %6 = stablehlo.convert %5 {xgpu.place = "fragments"} : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %7 = "xgpu.insert_tile"(%6, %arg6, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
    "xgpu.yield"(%7) : (tensor<64x64xbf16>) -> ()
  }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

func.func @turned(%arg0: tensor<64x36xbf16>, %arg1: tensor<64x36xbf16>, %arg2: tensor<36x32xbf16>, %arg3: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
  %0 = "xgpu.blocks"(%arg3) ({
  ^bb0(%arg4: index, %arg5: tensor<64x64xf32>):
    %1 = "xgpu.tile"(%arg0, %arg4) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 35]>, xgpu.layout = array<i64: 40, 1>, xgpu.place = "shared"} : (tensor<64x36xbf16>, index) -> tensor<32x36xbf16>
    %2 = "xgpu.tile"(%arg1, %arg4) {map = #xgpu.map<(d0)[s0, s1] -> (s1, s0), d0 in [0, 1], s0 in [0, 35], s1 in [0, 63]>, xgpu.layout = array<i64: 1, 40>, xgpu.place = "shared"} : (tensor<64x36xbf16>, index) -> tensor<36x64xbf16>
    %3 = "xgpu.tile"(%arg2, %arg4) {map = #xgpu.map<(d0)[s0, s1] -> (s1, s0), d0 in [0, 1], s0 in [0, 31], s1 in [0, 35]>, xgpu.layout = array<i64: 50, 1>, xgpu.place = "shared"} : (tensor<36x32xbf16>, index) -> tensor<32x36xbf16>
    %4 = stablehlo.add %1, %3 {xgpu.layout = array<i64: 40, 1>, xgpu.place = "shared"} : tensor<32x36xbf16>
    %5 = stablehlo.dot_general %4, %2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.place = "fragments", xgpu.warps = array<i64: 1, 2>} : (tensor<32x36xbf16>, tensor<36x64xbf16>) -> tensor<32x64xf32>
    %6 = "xgpu.insert_tile"(%5, %arg5, %arg4) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 1], s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>, tensor<64x64xf32>, index) -> tensor<64x64xf32>
    "xgpu.yield"(%6) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
