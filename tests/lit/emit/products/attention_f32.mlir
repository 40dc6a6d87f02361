// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Weights of f32 are multiplied as they are: threads round them to tf32 as they become operands. Of the largest weight
// of a row a step adds up what it gains by that.
// CHECK: %[[W:.*]] = stablehlo.power {{.*}} {xgpu.weight} : tensor<64x64xf32>
// CHECK: stablehlo.reduce_precision %[[LARGEST:.*]], format = e8m10 : tensor<64x64xf32>
// CHECK-NEXT: stablehlo.subtract %{{.*}}, %[[LARGEST]]
// CHECK: %[[V:.*]] = "xgpu.tile"
// CHECK-NEXT: stablehlo.dot_general %[[W]], %[[V]]

// Keys are neighbours of one sum in memory, so their tiles are read as they lie. Two columns that a lane has are
// exchanged for two others: of an eighth of 8 columns, four numbers of a thread are four exchanges.
// EMITTED: "xgpu.encode_tensor_map"{{.*}} element = tf32
// EMITTED-COUNT-8: "xgpu.warpgroup_mma"{{.*}} !llvm.ptr<3>, !llvm.ptr<3>, i1
// EMITTED-COUNT-4: "xgpu.shuffle"
// EMITTED-COUNT-32: "xgpu.shuffle"
// EMITTED-NOT: "xgpu.shuffle"
// EMITTED-COUNT-8: "xgpu.warpgroup_mma"{{.*}} !llvm.ptr<3>, !llvm.ptr<3>, i1
// EMITTED-NOT: !llvm.ptr<3>, !llvm.ptr<3>, i1
// EMITTED-COUNT-8: "xgpu.warpgroup_mma"{{.*}} b_layout = {{.*}} transposed = false}{{.*}} vector<4xi32>, !llvm.ptr<3>, i1

module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<2x72x64xf32>, %arg1: tensor<2x72x64xf32>, %arg2: tensor<2x64x72xf32>) -> tensor<2x72x64xf32> attributes {xgpu.emitter = "attention", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, stages = 2, groups = 1, blocks = 2, folded = true, overlap = true, steady = true>} {
    %0 = "xgpu.chain"(%arg0, %arg1, %arg2) ({
    ^bb0(%q: tensor<2x72x64xf32>, %k: tensor<2x72x64xf32>, %v: tensor<2x64x72xf32>):
      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x72x64xf32>, tensor<2x72x64xf32>) -> tensor<2x72x72xf32>
      %i = stablehlo.iota dim = 1 : tensor<2x72x72xi32>
      %j = stablehlo.iota dim = 2 : tensor<2x72x72xi32>
      %c = stablehlo.compare GE, %i, %j : (tensor<2x72x72xi32>, tensor<2x72x72xi32>) -> tensor<2x72x72xi1>
      %low = stablehlo.constant dense<0xFF800000> : tensor<2x72x72xf32>
      %x = stablehlo.select %c, %s, %low : tensor<2x72x72xi1>, tensor<2x72x72xf32>
      %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<2x72x72xf32>, tensor<f32>) -> tensor<2x72xf32>
      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x72xf32>) -> tensor<2x72x72xf32>
      %d = stablehlo.subtract %x, %mb : tensor<2x72x72xf32>
      %e = stablehlo.exponential %d : tensor<2x72x72xf32>
      %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x72x72xf32>, tensor<f32>) -> tensor<2x72xf32>
      %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x72xf32>) -> tensor<2x72x72xf32>
      %p = stablehlo.divide %e, %tb : tensor<2x72x72xf32>
      %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x72x72xf32>, tensor<2x64x72xf32>) -> tensor<2x72x64xf32>
      stablehlo.return %o : tensor<2x72x64xf32>
    }) {xgpu.hero} : (tensor<2x72x64xf32>, tensor<2x72x64xf32>, tensor<2x64x72xf32>) -> tensor<2x72x64xf32>
    return %0 : tensor<2x72x64xf32>
  }
  func.func @main(%arg0: tensor<2x72x64xf32>, %arg1: tensor<2x72x64xf32>, %arg2: tensor<2x64x72xf32>) -> tensor<2x72x64xf32> {
    %0 = call @fusion_0(%arg0, %arg1, %arg2) : (tensor<2x72x64xf32>, tensor<2x72x64xf32>, tensor<2x64x72xf32>) -> tensor<2x72x64xf32>
    return %0 : tensor<2x72x64xf32>
  }
}

