// RUN: xgpu compile %s --target sm_80 --emit tiles | FileCheck %s
// RUN: xgpu compile %s --target sm_80 --emit emitted | FileCheck %s --check-prefix=EMITTED
// RUN: xgpu compile %s --target sm_120 --emit ptx | FileCheck %s --check-prefix=PTX

// What blocks do with tiles is what they do where warp groups multiply; emitter and schedule say who does it here.
// CHECK: xgpu.level = "tiles"
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<64x76xbf16>, %arg1: tensor<76x37xbf16>, %arg2: tensor<37xf32>, %arg3: tensor<64x37xbf16>)
// CHECK-SAME: xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "warp_product", xgpu.grid = array<i64: 4, 1, 1>
// CHECK-SAME: xgpu.schedule = #xgpu.schedule<tile_m = 32,
// CHECK-SAME: left_bytes = 8, right_bytes = 2, ahead = false, neighbours = 1
// CHECK: "xgpu.blocks"(%arg3)
// CHECK: "xgpu.steps"
// CHECK: "xgpu.tile"(%arg0
// CHECK-SAME: d3 * 32 + s1 in [0, 75]>
// CHECK: "xgpu.tile"(%arg1
// CHECK-SAME: d2 * 32 + s1 in [0, 36], d3 * 32 + s0 in [0, 75]>
// CHECK: stablehlo.dot_general
// CHECK: {count = 3 : i64}
// CHECK: "xgpu.insert_tile"
// CHECK: {grid = array<i64: 1, 2, 2>}

// EMITTED: xgpu.level = "emitted"
// EMITTED-NOT: xgpu.blocks
// EMITTED: "xgpu.async_copy"
// EMITTED: "xgpu.load_matrix"
// EMITTED: "xgpu.mma"

// PTX: cp.async.ca.shared.global [{{.*}}], [{{.*}}], 8,
// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<64x76xbf16>, %arg1: tensor<76x37xbf16>, %arg2: tensor<37xf32>) -> tensor<64x37xbf16> attributes {xgpu.emitter = "warp_product", xgpu.schedule = #xgpu.schedule<tile_m = 32, tile_n = 32, tile_k = 32, stages = 3, down = 2, across = 1, resident = 2, blocks = 4, left_bytes = 8, right_bytes = 2, ahead = false, neighbours = 1, band = 2>} {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] {xgpu.hero, xgpu.product = "mma"} : (tensor<64x76xbf16>, tensor<76x37xbf16>) -> tensor<64x37xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<37xf32>) -> tensor<1x37xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x37xf32>) -> tensor<64x37xf32>
    %3 = stablehlo.add %0, %2 : tensor<64x37xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x37xf32>
    %5 = stablehlo.maximum %3, %4 : tensor<64x37xf32>
    %6 = stablehlo.convert %5 : (tensor<64x37xf32>) -> tensor<64x37xbf16>
    return %6 : tensor<64x37xbf16>
  }
  func.func @main(%arg0: tensor<64x76xbf16>, %arg1: tensor<76x37xbf16>, %arg2: tensor<37xf32>) -> tensor<64x37xbf16> {
    %0 = call @fusion_0(%arg0, %arg1, %arg2) : (tensor<64x76xbf16>, tensor<76x37xbf16>, tensor<37xf32>) -> tensor<64x37xbf16>
    return %0 : tensor<64x37xbf16>
  }
}
