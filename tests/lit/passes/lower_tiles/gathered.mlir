// RUN: xgpu-opt %s -p lower-tiles | FileCheck %s

// Keys and values in five pages of 16 rows; a tile has two. The thread that copies reads their numbers, clamped to the
// nine pages that there are; of a page after the last one it is beyond all, so that its box is of zeros.

// CHECK-LABEL: func.func @paged_fusion_0
// CHECK:         "xgpu.tensor_load"
// CHECK:         scf.for
// CHECK:           "xgpu.mbarrier_wait"
// CHECK:           "xgpu.mbarrier_expect"
// CHECK:           %[[INSIDE:.*]] = "xgpu.in_domain"{{.*}} -> (d3 * 2 + d4), {{.*}} d3 * 2 + d4 in [0, 4]
// CHECK:           %[[PLACE:.*]] = arith.select %[[INSIDE]], %{{.*}}, %{{.*}} : index
// CHECK:           %[[READ:.*]] = tensor.extract %arg3[%[[PLACE]]] : tensor<5xi32>
// CHECK:           %[[LOW:.*]] = arith.maxsi %[[READ]], %{{.*}} : i32
// CHECK:           %[[CLAMPED:.*]] = arith.minsi %[[LOW]], %{{.*}} : i32
// CHECK:           %[[NUMBER:.*]] = arith.select %[[INSIDE]], %[[CLAMPED]], %{{.*}} : i32
// CHECK:           arith.index_cast %[[NUMBER]] : i32 to index
// CHECK:           tensor.extract %arg3
// CHECK-NOT:       tensor.extract
// CHECK-COUNT-2:   "xgpu.tensor_load"
// CHECK:           "xgpu.mbarrier_wait"
// CHECK-COUNT-2:   tensor.extract %arg3
// CHECK-COUNT-2:   "xgpu.tensor_load"
// CHECK-NOT:       "xgpu.tensor_load"
// CHECK:         return
module attributes {xgpu.level = "tiles"} {
  func.func @paged_fusion_0(%arg0: tensor<64x64xbf16>, %arg1: tensor<9x16x64xbf16>, %arg2: tensor<9x16x64xbf16>, %arg3: tensor<5xi32>, %arg4: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "attention", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 4 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 32, stages = 2, groups = 1, blocks = 1, folded = false, branched = false, overlap = false, turns = false, reuse = false, computed = 0, steady = false>} {
    %0 = "xgpu.blocks"(%arg4) ({
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: tensor<64x64xbf16>):
      %1 = "xgpu.tile"(%arg0, %arg5, %arg6, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (s0, s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xbf16>, index, index, index) -> tensor<64x64xbf16>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<64x64xf32>
      %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<64xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<64xf32>
      %2:3 = "xgpu.steps"(%cst, %cst_0, %cst_1) ({
      ^bb0(%arg9: index, %arg10: tensor<64x64xf32>, %arg11: tensor<64xf32>, %arg12: tensor<64xf32>):
        %7 = "xgpu.gather_tile"(%arg1, %arg3, %arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3, d4)[s0, s1] -> (d4, s1 mod 16, s0), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], d4 in [0, 8], s0 in [0, 63], s1 in [0, 31], d3 * 32 + s1 in [0, 79]>, numbers = [#xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 2 + s1 floordiv 16), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], s0 in [0, 63], s1 in [0, 31]>]} : (tensor<9x16x64xbf16>, tensor<5xi32>, index, index, index, index) -> tensor<64x32xbf16>
        %8 = stablehlo.dot_general %1, %7, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x64xbf16>, tensor<64x32xbf16>) -> tensor<64x32xf32>
        %9 = "xgpu.index_tile"(%arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 32 + s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], s0 in [0, 63], s1 in [0, 31]>} : (index, index, index, index) -> tensor<64x32xi32>
        %c = stablehlo.constant dense<80> : tensor<64x32xi32>
        %10 = stablehlo.compare LT, %9, %c : (tensor<64x32xi32>, tensor<64x32xi32>) -> tensor<64x32xi1>
        %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<64x32xf32>
        %11 = stablehlo.select %10, %8, %cst_2 : tensor<64x32xi1>, tensor<64x32xf32>
        %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %12 = stablehlo.reduce(%11 init: %cst_3) applies stablehlo.maximum across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
        %13 = stablehlo.maximum %arg11, %12 : tensor<64xf32>
        %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<64xf32>
        %14 = stablehlo.compare EQ, %13, %cst_4 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
        %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<64xf32>
        %15 = stablehlo.select %14, %cst_5, %13 : tensor<64xi1>, tensor<64xf32>
        %16 = stablehlo.broadcast_in_dim %15, dims = [0] : (tensor<64xf32>) -> tensor<64x32xf32>
        %17 = stablehlo.subtract %11, %16 : tensor<64x32xf32>
        %18 = stablehlo.exponential %17 {xgpu.weight} : tensor<64x32xf32>
        %19 = stablehlo.subtract %arg11, %15 : tensor<64xf32>
        %20 = stablehlo.exponential %19 {xgpu.weight} : tensor<64xf32>
        %21 = stablehlo.multiply %arg12, %20 : tensor<64xf32>
        %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %22 = stablehlo.reduce(%18 init: %cst_6) applies stablehlo.add across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
        %23 = stablehlo.add %21, %22 : tensor<64xf32>
        %24 = "xgpu.gather_tile"(%arg2, %arg3, %arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3, d4)[s0, s1] -> (d4, s0 mod 16, s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], d4 in [0, 8], s0 in [0, 31], s1 in [0, 63], d3 * 32 + s0 in [0, 79]>, numbers = [#xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 2 + s0 floordiv 16), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], s0 in [0, 31], s1 in [0, 63]>]} : (tensor<9x16x64xbf16>, tensor<5xi32>, index, index, index, index) -> tensor<32x64xbf16>
        %25 = stablehlo.convert %18 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
        %26 = stablehlo.dot_general %25, %24, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
        %27 = stablehlo.broadcast_in_dim %20, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
        %28 = stablehlo.multiply %arg10, %27 : tensor<64x64xf32>
        %29 = stablehlo.add %28, %26 : tensor<64x64xf32>
        "xgpu.yield"(%29, %13, %23) : (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) -> ()
      }) {count = 3 : i64} : (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
      %3 = stablehlo.broadcast_in_dim %2#2, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
      %4 = stablehlo.divide %2#0, %3 {xgpu.grade = 16 : i64} : tensor<64x64xf32>
      %5 = stablehlo.convert %4 : (tensor<64x64xf32>) -> tensor<64x64xbf16>
      %6 = "xgpu.insert_tile"(%5, %arg8, %arg5, %arg6, %arg7) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (s0, s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xbf16>, tensor<64x64xbf16>, index, index, index) -> tensor<64x64xbf16>
      "xgpu.yield"(%6) : (tensor<64x64xbf16>) -> ()
    }) {grid = array<i64: 1, 1, 1>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    return %0 : tensor<64x64xbf16>
  }
}
