// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit ptx | FileCheck %s --check-prefix=PTX

// Few rows of a product are the columns of its tiles: the second operand is multiplied from the left, and tiles are
// those of the result by columns. How often blocks share a tile's steps is the threads' affair.
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<5x512xbf16>, %arg1: tensor<512x96xbf16>, %arg2: tensor<96xf32>, %arg3: tensor<5x96xf32>)
// CHECK-SAME:  xgpu.grid = array<i64: 4, 1, 1>
// CHECK-SAME:  split = 2, swapped = true>
// CHECK:       "xgpu.steps"
// CHECK:       %[[W:.*]] = "xgpu.tile"(%arg1, {{.*}}[s0, s1] -> (d3 * 64 + s1, d1 * 64 + s0), {{.*}} -> tensor<64x64xbf16>
// CHECK-NEXT:  %[[X:.*]] = "xgpu.tile"(%arg0, {{.*}}[s0, s1] -> (s1, d3 * 64 + s0), {{.*}} -> tensor<64x8xbf16>
// CHECK-NEXT:  stablehlo.dot_general %[[W]], %[[X]], contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT]
// CHECK:       {count = 8 : i64}
// CHECK-NEXT:  "xgpu.tile"(%arg2, {{.*}}[s0, s1] -> (d1 * 64 + s0), {{.*}} -> tensor<64x8xf32>
// CHECK:       "xgpu.insert_tile"({{.*}}[s0, s1] -> (s1, d1 * 64 + s0), {{.*}}
// CHECK:       {grid = array<i64: 1, 2, 1>}

// PTX: .reqnctapercluster 2
// PTX: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
// PTX: ld.shared::cluster.v4
// PTX: st.global.v4
module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<5x512xbf16>, %arg1: tensor<512x96xbf16>, %arg2: tensor<96xf32>) -> tensor<5x96xf32> attributes {xgpu.emitter = "product", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 8, split = 2, swapped = true>} {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] {xgpu.hero, xgpu.product = "wgmma"} : (tensor<5x512xbf16>, tensor<512x96xbf16>) -> tensor<5x96xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<96xf32>) -> tensor<5x96xf32>
    %2 = stablehlo.add %0, %1 : tensor<5x96xf32>
    return %2 : tensor<5x96xf32>
  }
  func.func @main(%arg0: tensor<5x512xbf16>, %arg1: tensor<512x96xbf16>, %arg2: tensor<96xf32>) -> tensor<5x96xf32> {
    %0 = call @fusion_0(%arg0, %arg1, %arg2) : (tensor<5x512xbf16>, tensor<512x96xbf16>, tensor<96xf32>) -> tensor<5x96xf32>
    return %0 : tensor<5x96xf32>
  }
}
