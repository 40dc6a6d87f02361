// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Blocks carry the sums, and of each row the largest logit and the sum of weights; keys beyond the last have none. The
// mask says which steps a tile of rows sees. Elements of heads are found by the matrix's number.
// CHECK: xgpu.level = "tiles"
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<2x72x64xbf16>, %arg1: tensor<2x72x64xbf16>, %arg2: tensor<2x72x64xbf16>, %arg3: tensor<2x72x64xbf16>)
// CHECK-SAME: xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "attention", xgpu.grid = array<i64: 2, 1, 1>
// CHECK: "xgpu.blocks"(%arg3) ({
// CHECK-NEXT: ^bb0(%[[B:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[OUT:.*]]: tensor<2x72x64xbf16>):
// CHECK-NEXT: %[[Q:.*]] = "xgpu.tile"(%arg0, %[[B]], %[[I]], %[[J]])
// CHECK-SAME: -> (d0, d1 * 64 + s0, s1)
// CHECK: %[[R:.*]]:3 = "xgpu.steps"
// CHECK-NEXT: ^bb0(%[[STEP:.*]]: index, %[[SUMS:.*]]: tensor<64x64xf32>, %[[MAX:.*]]: tensor<64xf32>, %[[TOTAL:.*]]: tensor<64xf32>):
// CHECK-NEXT: %[[K:.*]] = "xgpu.tile"(%arg1, %[[B]], %[[I]], %[[J]], %[[STEP]])
// CHECK-SAME: -> (d0, d3 * 64 + s1, s0)
// CHECK-NEXT: %[[S:.*]] = stablehlo.dot_general %[[Q]], %[[K]]
// CHECK: "xgpu.index_tile"
// CHECK: %[[X:.*]] = stablehlo.select {{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: stablehlo.compare LT
// CHECK: %[[KEYS:.*]] = stablehlo.select
// CHECK: %[[OF_STEP:.*]] = stablehlo.reduce(%[[KEYS]] init: {{.*}}) applies stablehlo.maximum
// CHECK-NEXT: %[[ABOVE:.*]] = stablehlo.maximum %[[MAX]], %[[OF_STEP]]
// CHECK: %[[P:.*]] = stablehlo.exponential {{.*}} {xgpu.weight}
// CHECK: %[[SCALE:.*]] = stablehlo.exponential {{.*}} {xgpu.weight} : tensor<64xf32>
// CHECK: %[[W:.*]] = stablehlo.convert %[[P]] : (tensor<64x64xf32>) -> tensor<64x64xbf16>
// CHECK-NEXT: %[[PV:.*]] = stablehlo.dot_general %[[W]]
// CHECK: %[[SCALED:.*]] = stablehlo.multiply %[[SUMS]]
// CHECK-NEXT: %[[NEXT:.*]] = stablehlo.add %[[SCALED]], %[[PV]]
// CHECK-NEXT: "xgpu.yield"(%[[NEXT]], %[[ABOVE]],
// CHECK-NEXT: }) {count = 2 : i64, xgpu.visible = #xgpu.map<(d0, d1, d2) -> (0, d1 + 1),
// CHECK: stablehlo.divide %[[R]]#0
// CHECK: "xgpu.insert_tile"
// CHECK: }) {grid = array<i64: 2, 2, 1>}

// EMITTED: xgpu.level = "emitted"
// EMITTED-NOT: xgpu.blocks
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: scf.for
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<32xf32>
// EMITTED: "xgpu.warpgroup_wait"{{.*}} {pending = 1 : i64}

module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<2x72x64xbf16>, %arg1: tensor<2x72x64xbf16>, %arg2: tensor<2x72x64xbf16>) -> tensor<2x72x64xbf16> attributes {xgpu.emitter = "attention", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, stages = 2, groups = 1, blocks = 2, folded = false, overlap = true, steady = false>} {
    %0 = "xgpu.chain"(%arg0, %arg1, %arg2) ({
    ^bb0(%q: tensor<2x72x64xbf16>, %k: tensor<2x72x64xbf16>, %v: tensor<2x72x64xbf16>):
      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x72x64xbf16>, tensor<2x72x64xbf16>) -> tensor<2x72x72xf32>
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
      %w = stablehlo.convert %p : (tensor<2x72x72xf32>) -> tensor<2x72x72xbf16>
      %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x72x72xbf16>, tensor<2x72x64xbf16>) -> tensor<2x72x64xbf16>
      stablehlo.return %o : tensor<2x72x64xbf16>
    }) {xgpu.hero} : (tensor<2x72x64xbf16>, tensor<2x72x64xbf16>, tensor<2x72x64xbf16>) -> tensor<2x72x64xbf16>
    return %0 : tensor<2x72x64xbf16>
  }
  func.func @main(%arg0: tensor<2x72x64xbf16>, %arg1: tensor<2x72x64xbf16>, %arg2: tensor<2x72x64xbf16>) -> tensor<2x72x64xbf16> {
    %0 = call @fusion_0(%arg0, %arg1, %arg2) : (tensor<2x72x64xbf16>, tensor<2x72x64xbf16>, tensor<2x72x64xbf16>) -> tensor<2x72x64xbf16>
    return %0 : tensor<2x72x64xbf16>
  }
}
