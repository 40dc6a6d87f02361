// RUN: xgpu-opt %s -p assign-layouts | FileCheck %s

// CHECK: "xgpu.tile"{{.*}}xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared"
// CHECK: "xgpu.tile"{{.*}}xgpu.layout = array<i64: 32, 1>, xgpu.place = "shared"
// CHECK: {count = 3 : i64, xgpu.place = ["fragments"]}
// CHECK: "xgpu.tile"{{.*}}xgpu.layout = array<i64: 1>, xgpu.place = "shared"
module attributes {xgpu.level = "tiles"} {
  func.func @k(%arg0: tensor<64x96xbf16>, %arg1: tensor<96x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
    %0 = "xgpu.blocks"(%arg3) ({
    ^bb0(%arg4: index, %arg5: index, %arg6: tensor<64x64xbf16>):
      %cst = stablehlo.constant {xgpu.place = "computed"} dense<0.000000e+00> : tensor<32x32xf32>
      %1 = "xgpu.steps"(%cst) ({
      ^bb0(%arg7: index, %arg8: tensor<32x32xf32>):
        %8 = "xgpu.tile"(%arg0, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.place = "shared"} : (tensor<64x96xbf16>, index, index, index) -> tensor<32x32xbf16>
        %9 = "xgpu.tile"(%arg1, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 2], s0 in [0, 31], s1 in [0, 31]>, xgpu.place = "shared"} : (tensor<96x64xbf16>, index, index, index) -> tensor<32x32xbf16>
        %10 = stablehlo.dot_general %8, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.place = "fragments", xgpu.warps = array<i64: 2, 2>} : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
        %11 = stablehlo.add %arg8, %10 {xgpu.place = "fragments"} : tensor<32x32xf32>
        "xgpu.yield"(%11) : (tensor<32x32xf32>) -> ()
      }) {count = 3 : i64, xgpu.place = ["fragments"]} : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %2 = "xgpu.tile"(%arg2, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0] -> (d1 * 32 + s0), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31]>, xgpu.place = "shared"} : (tensor<64xf32>, index, index) -> tensor<32xf32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [1] {xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32x32xf32>
      %4 = stablehlo.add %1, %3 {xgpu.place = "fragments"} : tensor<32x32xf32>
      %5 = stablehlo.tanh %4 {xgpu.place = "fragments"} : tensor<32x32xf32>
      %6 = stablehlo.convert %5 {xgpu.place = "fragments"} : (tensor<32x32xf32>) -> tensor<32x32xbf16>
      %7 = "xgpu.insert_tile"(%6, %arg6, %arg4, %arg5) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 in [0, 1], d1 in [0, 1], s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>, tensor<64x64xbf16>, index, index) -> tensor<64x64xbf16>
      "xgpu.yield"(%7) : (tensor<64x64xbf16>) -> ()
    }) {grid = array<i64: 2, 2>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    return %0 : tensor<64x64xbf16>
  }
}
