// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Blocks add up the products of tiles step by step, of which the last has zeros beyond the operands; what follows is
// computed on the tile, and the schedule goes on with the kernel.
// CHECK: xgpu.level = "tiles"
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<256x136xbf16>, %arg1: tensor<136x64xbf16>, %arg2: tensor<64xf32>, %arg3: tensor<256x64xbf16>)
// CHECK-SAME: xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "product", xgpu.grid = array<i64: 4, 1, 1>
// CHECK-SAME: xgpu.schedule = #xgpu.schedule<tile_m = 64,
// CHECK: %[[ALL:.*]] = "xgpu.blocks"(%arg3) ({
// CHECK-NEXT: ^bb0(%[[B:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[OUT:.*]]: tensor<256x64xbf16>):
// CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<64x64xf32>
// CHECK-NEXT: %[[SUM:.*]] = "xgpu.steps"(%[[ZERO]]) ({
// CHECK-NEXT: ^bb0(%[[K:.*]]: index, %[[PART:.*]]: tensor<64x64xf32>):
// CHECK-NEXT: %[[X:.*]] = "xgpu.tile"(%arg0, %[[B]], %[[I]], %[[J]], %[[K]])
// CHECK-SAME: -> (d1 * 64 + s0, d3 * 64 + s1)
// CHECK-SAME: d3 * 64 + s1 in [0, 135]>
// CHECK-NEXT: %[[W:.*]] = "xgpu.tile"(%arg1, %[[B]], %[[I]], %[[J]], %[[K]])
// CHECK-SAME: d3 * 64 + s0 in [0, 135]>
// CHECK-NEXT: %[[P:.*]] = stablehlo.dot_general %[[X]], %[[W]], contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
// CHECK-NEXT: %[[NEXT:.*]] = stablehlo.add %[[PART]], %[[P]]
// CHECK-NEXT: "xgpu.yield"(%[[NEXT]])
// CHECK-NEXT: }) {count = 3 : i64}
// CHECK-NEXT: %[[BIAS:.*]] = "xgpu.tile"(%arg2, %[[B]], %[[I]], %[[J]])
// CHECK-NEXT: %[[Y:.*]] = stablehlo.add %[[SUM]], %[[BIAS]]
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<64x64xf32>
// CHECK-NEXT: %[[R:.*]] = stablehlo.maximum %[[Y]], %[[C]]
// CHECK-NEXT: %[[Z:.*]] = stablehlo.convert %[[R]]
// CHECK-NEXT: %[[NEW:.*]] = "xgpu.insert_tile"(%[[Z]], %[[OUT]], %[[B]], %[[I]], %[[J]])
// CHECK-NEXT: "xgpu.yield"(%[[NEW]])
// CHECK-NEXT: }) {grid = array<i64: 1, 4, 1>}
// CHECK-NEXT: return %[[ALL]]

// EMITTED: xgpu.level = "emitted"
// EMITTED-NOT: xgpu.blocks
// EMITTED: "xgpu.warpgroup_mma"
module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<256x136xbf16>, %arg1: tensor<136x64xbf16>, %arg2: tensor<64xf32>) -> tensor<256x64xbf16> attributes {xgpu.emitter = "product", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, tile_k = 64, stages = 2, groups = 1, blocks = 4, cluster = 2, staged = true, band = 1, split = 1, swapped = false>} {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.hero, xgpu.product = "wgmma"} : (tensor<256x136xbf16>, tensor<136x64xbf16>) -> tensor<256x64xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<64xf32>) -> tensor<1x64xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<256x64xf32>
    %3 = stablehlo.add %0, %2 : tensor<256x64xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
    %5 = stablehlo.maximum %3, %4 : tensor<256x64xf32>
    %6 = stablehlo.convert %5 : (tensor<256x64xf32>) -> tensor<256x64xbf16>
    return %6 : tensor<256x64xbf16>
  }
  func.func @main(%arg0: tensor<256x136xbf16>, %arg1: tensor<136x64xbf16>, %arg2: tensor<64xf32>) -> tensor<256x64xbf16> {
    %0 = call @fusion_0(%arg0, %arg1, %arg2) : (tensor<256x136xbf16>, tensor<136x64xbf16>, tensor<64xf32>) -> tensor<256x64xbf16>
    return %0 : tensor<256x64xbf16>
  }
}
