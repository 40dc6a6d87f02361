// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Sums are relative to a number of each row that stays until a logit is above it; then to one that is 8 / log2 e above
// that logit, and sums are multiplied, rarely. What the largest weight of a step gains by its rounding is carried, too,
// and added to the sum of weights at the end.
// CHECK: %[[R:.*]]:4 = "xgpu.steps"
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[SUMS:.*]]: tensor<64x64xf32>, %[[BEFORE:.*]]: tensor<64xf32>, %[[TOTAL:.*]]: tensor<64xf32>, %[[GAINED:.*]]: tensor<64xf32>):
// CHECK: %[[HIGHEST:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.maximum
// CHECK-NEXT: %[[IS_ABOVE:.*]] = stablehlo.compare GT, %[[HIGHEST]], %[[BEFORE]]
// CHECK-NEXT: %[[FAR:.*]] = stablehlo.constant dense<5.545
// CHECK-NEXT: %[[LIFTED:.*]] = stablehlo.add %[[HIGHEST]], %[[FAR]]
// CHECK-NEXT: %[[BASE:.*]] = stablehlo.select %[[IS_ABOVE]], %[[LIFTED]], %[[BEFORE]]
// CHECK: %[[SCALE:.*]] = stablehlo.power {{.*}} {xgpu.weight} : tensor<64xf32>
// CHECK: %[[W:.*]] = stablehlo.power {{.*}} {xgpu.weight} : tensor<64x64xf32>
// CHECK-NEXT: %[[ROUNDED:.*]] = stablehlo.convert %[[W]] : (tensor<64x64xf32>) -> tensor<64x64xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = stablehlo.convert %[[ROUNDED]]
// CHECK-NEXT: stablehlo.subtract %[[WIDE]], %[[W]]
// CHECK: %[[MULTIPLIED:.*]] = stablehlo.multiply %[[SUMS]]
// CHECK: %[[KEPT:.*]] = stablehlo.select %{{.*}}, %[[MULTIPLIED]], %[[SUMS]] {xgpu.rare}
// CHECK-NEXT: %[[NEXT:.*]] = stablehlo.add %[[KEPT]]
// CHECK: %[[MORE:.*]] = stablehlo.multiply %[[GAINED]], %[[SCALE]]
// CHECK-NEXT: %[[ALL:.*]] = stablehlo.add %[[MORE]]
// CHECK-NEXT: "xgpu.yield"(%[[NEXT]], %[[BASE]], %{{.*}}, %[[ALL]])
// CHECK: %[[SUM:.*]] = stablehlo.add %[[R]]#2, %[[R]]#3
// CHECK-NEXT: %[[DIVISOR:.*]] = stablehlo.broadcast_in_dim %[[SUM]]
// CHECK-NEXT: stablehlo.divide %[[R]]#0, %[[DIVISOR]]

// Lanes meet for the largest logit of a row in each step, and for its sum of weights once all steps are done.
// EMITTED: "xgpu.warpgroup_mma"{{.*}} vector<4xi32>
// EMITTED-COUNT-4: "xgpu.shuffle"
// EMITTED-NOT: "xgpu.shuffle"
// EMITTED-COUNT-4: "xgpu.warpgroup_mma"{{.*}} vector<4xi32>
// EMITTED-NOT: "xgpu.warpgroup_mma"
// EMITTED: "xgpu.shuffle"

module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<2x72x64xbf16>, %arg1: tensor<2x72x64xbf16>, %arg2: tensor<2x72x64xbf16>) -> tensor<2x72x64xbf16> attributes {xgpu.emitter = "attention", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, stages = 2, groups = 1, blocks = 2, folded = true, overlap = true, steady = true>} {
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
