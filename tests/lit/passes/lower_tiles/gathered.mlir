// RUN: xgpu-opt %s -p lower-tiles | FileCheck %s

// Keys and values in five pages of 16 rows; a tile has two. The thread that copies computes their numbers, of which
// those below zero count from the end, clamped to the nine pages that there are. Of a page after the last one it is
// beyond all, so that its box is of zeros.

// CHECK-LABEL: func.func @paged_fusion_0
// CHECK:         "xgpu.tensor_load"
// CHECK:         scf.for
// CHECK:           "xgpu.mbarrier_wait"
// CHECK:           "xgpu.mbarrier_expect"
// CHECK:           %[[INSIDE:.*]] = "xgpu.in_domain"{{.*}} d3 * 32 + d4 * 16 in [0, 64]
// CHECK:           %[[READ:.*]] = "xgpu.predicated_extract"(%{{.*}}, %{{.*}}, %arg3, %{{.*}})
// CHECK:           %[[FROM_END:.*]] = arith.addi %[[READ]], %{{.*}} : i32
// CHECK:           %[[WRAPPED:.*]] = arith.select %{{.*}}, %[[FROM_END]], %[[READ]] : i32
// CHECK:           %[[LOW:.*]] = arith.maxsi %[[WRAPPED]], %{{.*}} : i32
// CHECK:           %[[CLAMPED:.*]] = arith.minsi %[[LOW]], %{{.*}} : i32
// CHECK:           %[[NUMBER:.*]] = arith.select %[[INSIDE]], %[[CLAMPED]], %{{.*}} : i32
// CHECK:           arith.index_cast %[[NUMBER]] : i32 to index
// CHECK:           "xgpu.predicated_extract"(%{{.*}}, %{{.*}}, %arg3,
// CHECK-NOT:       xgpu.predicated_extract
// CHECK-COUNT-2:   "xgpu.tensor_load"
// CHECK:           "xgpu.mbarrier_wait"
// CHECK-COUNT-2:   "xgpu.predicated_extract"(%{{.*}}, %{{.*}}, %arg3,
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
        %7 = "xgpu.tile"(%arg3, %arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 2 + s1 floordiv 16), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], s0 in [0, 63], s1 in [0, 31], d3 * 2 + s1 floordiv 16 in [0, 4]>} : (tensor<5xi32>, index, index, index, index) -> tensor<64x32xi32>
        %c = stablehlo.constant dense<0> : tensor<64x32xi32>
        %8 = stablehlo.compare LT, %7, %c, SIGNED : (tensor<64x32xi32>, tensor<64x32xi32>) -> tensor<64x32xi1>
        %c_2 = stablehlo.constant dense<9> : tensor<64x32xi32>
        %9 = stablehlo.add %7, %c_2 : tensor<64x32xi32>
        %10 = stablehlo.select %8, %9, %7 : tensor<64x32xi1>, tensor<64x32xi32>
        %11 = "xgpu.gather_tile"(%arg1, %10, %arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3, d4)[s0, s1] -> (d4, s1 mod 16, s0), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], d4 in [0, 8], s0 in [0, 63], s1 in [0, 31], d3 * 32 + s1 in [0, 79]>} : (tensor<9x16x64xbf16>, tensor<64x32xi32>, index, index, index, index) -> tensor<64x32xbf16>
        %12 = stablehlo.dot_general %1, %11, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x64xbf16>, tensor<64x32xbf16>) -> tensor<64x32xf32>
        %13 = "xgpu.index_tile"(%arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 32 + s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], s0 in [0, 63], s1 in [0, 31]>} : (index, index, index, index) -> tensor<64x32xi32>
        %c_3 = stablehlo.constant dense<80> : tensor<64x32xi32>
        %14 = stablehlo.compare LT, %13, %c_3 : (tensor<64x32xi32>, tensor<64x32xi32>) -> tensor<64x32xi1>
        %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<64x32xf32>
        %15 = stablehlo.select %14, %12, %cst_4 : tensor<64x32xi1>, tensor<64x32xf32>
        %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %16 = stablehlo.reduce(%15 init: %cst_5) applies stablehlo.maximum across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
        %17 = stablehlo.maximum %arg11, %16 : tensor<64xf32>
        %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<64xf32>
        %18 = stablehlo.compare EQ, %17, %cst_6 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
        %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<64xf32>
        %19 = stablehlo.select %18, %cst_7, %17 : tensor<64xi1>, tensor<64xf32>
        %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<64xf32>) -> tensor<64x32xf32>
        %21 = stablehlo.subtract %15, %20 : tensor<64x32xf32>
        %22 = stablehlo.exponential %21 {xgpu.weight} : tensor<64x32xf32>
        %23 = stablehlo.subtract %arg11, %19 : tensor<64xf32>
        %24 = stablehlo.exponential %23 {xgpu.weight} : tensor<64xf32>
        %25 = stablehlo.multiply %arg12, %24 : tensor<64xf32>
        %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %26 = stablehlo.reduce(%22 init: %cst_8) applies stablehlo.add across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
        %27 = stablehlo.add %25, %26 : tensor<64xf32>
        %28 = "xgpu.tile"(%arg3, %arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 2 + s0 floordiv 16), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], s0 in [0, 31], s1 in [0, 63], d3 * 2 + s0 floordiv 16 in [0, 4]>} : (tensor<5xi32>, index, index, index, index) -> tensor<32x64xi32>
        %c_9 = stablehlo.constant dense<0> : tensor<32x64xi32>
        %29 = stablehlo.compare LT, %28, %c_9, SIGNED : (tensor<32x64xi32>, tensor<32x64xi32>) -> tensor<32x64xi1>
        %c_10 = stablehlo.constant dense<9> : tensor<32x64xi32>
        %30 = stablehlo.add %28, %c_10 : tensor<32x64xi32>
        %31 = stablehlo.select %29, %30, %28 : tensor<32x64xi1>, tensor<32x64xi32>
        %32 = "xgpu.gather_tile"(%arg2, %31, %arg5, %arg6, %arg7, %arg9) {map = #xgpu.map<(d0, d1, d2, d3, d4)[s0, s1] -> (d4, s0 mod 16, s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 2], d4 in [0, 8], s0 in [0, 31], s1 in [0, 63], d3 * 32 + s0 in [0, 79]>} : (tensor<9x16x64xbf16>, tensor<32x64xi32>, index, index, index, index) -> tensor<32x64xbf16>
        %33 = stablehlo.convert %22 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
        %34 = stablehlo.dot_general %33, %32, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
        %35 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
        %36 = stablehlo.multiply %arg10, %35 : tensor<64x64xf32>
        %37 = stablehlo.add %36, %34 : tensor<64x64xf32>
        "xgpu.yield"(%37, %17, %27) : (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) -> ()
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
