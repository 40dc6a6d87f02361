// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Rows of blocks are keys, and steps go along the rows of attention. Tiles of a step are multiplied twice, the second
// time as they are transposed. What there is of each row is read for columns of the tile.
// CHECK: xgpu.level = "tiles"
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "sums"
// CHECK: "xgpu.blocks"
// CHECK: %[[K:.*]] = "xgpu.tile"
// CHECK-SAME: -> (s0, s1)
// CHECK: %[[V:.*]] = "xgpu.tile"
// CHECK-SAME: -> (s0, s1)
// CHECK: "xgpu.steps"
// CHECK: %[[Q:.*]] = "xgpu.tile"
// CHECK-SAME: -> (s1, s0)
// CHECK-NEXT: %[[S:.*]] = stablehlo.dot_general %[[K]], %[[Q]]
// CHECK: %[[G:.*]] = "xgpu.tile"
// CHECK-SAME: -> (s1, s0)
// CHECK-NEXT: %[[DP:.*]] = stablehlo.dot_general %[[V]], %[[G]]
// CHECK: %[[M:.*]] = "xgpu.tile"
// CHECK-SAME: -> (s1)
// CHECK-NEXT: %[[X:.*]] = stablehlo.subtract %[[S]], %[[M]]
// CHECK-NEXT: stablehlo.exponential %[[X]] {xgpu.weight}
// CHECK: %[[W:.*]] = stablehlo.convert
// CHECK-NEXT: %[[GT:.*]] = stablehlo.transpose %[[G]]
// CHECK-NEXT: %[[PG:.*]] = stablehlo.dot_general %[[W]], %[[GT]]
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[DP]]
// CHECK: stablehlo.add %[[WIDE]]
// CHECK: %[[QT:.*]] = stablehlo.transpose %[[Q]]
// CHECK: "xgpu.insert_tile"
// CHECK: "xgpu.insert_tile"

// Products of tiles are both under way before the first is waited for; the first sum before the second product is.
// EMITTED: xgpu.level = "emitted"
// EMITTED-NOT: xgpu.blocks
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: "xgpu.warpgroup_commit"
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: "xgpu.warpgroup_commit"
// EMITTED: "xgpu.warpgroup_wait"{{.*}} {pending = 1 : i64}
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: "xgpu.warpgroup_wait"{{.*}} {pending = 1 : i64}
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: "xgpu.warpgroup_wait"{{.*}} {pending = 0 : i64}

module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<64x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) attributes {xgpu.emitter = "sums", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, stages = 2, groups = 1, blocks = 1>} {
    %0:2 = "xgpu.chain"(%arg0, %arg1, %arg4, %arg5, %arg3, %arg2, %arg6) ({
    ^bb0(%arg7: tensor<64x64xbf16>, %arg8: tensor<64x64xbf16>, %arg9: tensor<64xf32>, %arg10: tensor<64xf32>, %arg11: tensor<64x64xbf16>, %arg12: tensor<64x64xbf16>, %arg13: tensor<64xf32>):
      %1 = stablehlo.dot_general %arg7, %arg8, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
      %2 = stablehlo.broadcast_in_dim %arg9, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
      %3 = stablehlo.subtract %1, %2 : tensor<64x64xf32>
      %4 = stablehlo.exponential %3 {xgpu.weight} : tensor<64x64xf32>
      %5 = stablehlo.broadcast_in_dim %arg10, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
      %6 = stablehlo.multiply %4, %5 : tensor<64x64xf32>
      %7 = stablehlo.convert %6 : (tensor<64x64xf32>) -> tensor<64x64xbf16>
      %8 = stablehlo.dot_general %7, %arg11, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      %9 = stablehlo.dot_general %arg11, %arg12, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      %10 = stablehlo.convert %9 : (tensor<64x64xbf16>) -> tensor<64x64xf32>
      %11 = stablehlo.broadcast_in_dim %arg13, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
      %12 = stablehlo.add %10, %11 : tensor<64x64xf32>
      %13 = stablehlo.multiply %12, %6 : tensor<64x64xf32>
      %14 = stablehlo.convert %13 : (tensor<64x64xf32>) -> tensor<64x64xbf16>
      %15 = stablehlo.dot_general %14, %arg7, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      stablehlo.return %8, %15 : tensor<64x64xbf16>, tensor<64x64xbf16>
    }) {xgpu.hero} : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>)
    return %0#1, %0#0 : tensor<64x64xbf16>, tensor<64x64xbf16>
  }
  func.func @main(%arg0: tensor<64x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) {
    %0:2 = call @fusion_0(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6) : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>)
    return %0#0, %0#1 : tensor<64x64xbf16>, tensor<64x64xbf16>
  }
}
