// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// What lies between the products is a result, too: steps carry its array, and each writes a tile of it.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "sums"
// CHECK: "xgpu.blocks"
// CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: tensor<64x64xbf16>, %[[OUT:.*]]: tensor<64x64xf32>, %{{.*}}: tensor<64x64xbf16>):
// CHECK: %[[STEPS:.*]]:3 = "xgpu.steps"(%{{.*}}, %[[OUT]], %{{.*}}) ({
// CHECK-NEXT: ^bb0(%[[STEP:.*]]: index, %{{.*}}: tensor<64x64xf32>, %[[ARRAY:.*]]: tensor<64x64xf32>, %{{.*}}: tensor<64x64xf32>):
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.dot_general
// CHECK-NEXT: stablehlo.add
// CHECK: %[[DP:.*]] = stablehlo.add %{{.*}}, %{{.*}} : tensor<64x64xf32>
// CHECK-NEXT: %[[X:.*]] = stablehlo.multiply %[[DP]]
// CHECK-NEXT: %[[W:.*]] = stablehlo.convert %[[X]]
// CHECK: stablehlo.dot_general %[[W]]
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add
// CHECK-NEXT: %[[WRITTEN:.*]] = "xgpu.insert_tile"(%[[X]], %[[ARRAY]], %{{.*}}, %{{.*}}, %{{.*}}, %[[STEP]])
// CHECK-SAME: -> (s1, s0)
// CHECK-NEXT: "xgpu.yield"(%[[SUM]], %[[WRITTEN]], %{{.*}})
// CHECK: "xgpu.yield"(%{{.*}}, %[[STEPS]]#1, %{{.*}})

// The array is not carried from step to step: threads write to memory.
// EMITTED-NOT: xgpu.blocks
// EMITTED: scf.for {{.*}} iter_args({{.*}}) -> (vector<32xf32>, vector<32xf32>, i32, i32)
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// EMITTED: scf.yield

module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<64x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64x64xbf16>) attributes {xgpu.emitter = "sums", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, stages = 2, groups = 1, blocks = 1>} {
    %0:3 = "xgpu.chain"(%arg0, %arg1, %arg4, %arg5, %arg3, %arg2, %arg6) ({
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
      stablehlo.return %8, %15, %13 : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    }) {xgpu.hero} : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>)
    return %0#1, %0#2, %0#0 : tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64x64xbf16>
  }
  func.func @main(%arg0: tensor<64x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64x64xbf16>) {
    %0:3 = call @fusion_0(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6) : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64x64xbf16>)
    return %0#0, %0#1, %0#2 : tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64x64xbf16>
  }
}
