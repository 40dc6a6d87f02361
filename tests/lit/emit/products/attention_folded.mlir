// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// The divisor of the logits is left to the exponential: hidden logits are multiplied by it. Weights and what scales the
// sums are powers of two relative to a rounded product for each row. Rows whose largest logit is large are taken relative
// to it before, which is all that the divisor is divided by for.
// CHECK: %[[STEPS:.*]] = "xgpu.steps"
// CHECK-NEXT: ^bb0(%[[STEP:.*]]: index, %[[SUMS:.*]]: tensor<64x64xf32>, %[[MAX:.*]]: tensor<64xf32>, %[[TOTAL:.*]]: tensor<64xf32>):
// CHECK: %[[S:.*]] = stablehlo.dot_general
// CHECK: %[[LOW:.*]] = stablehlo.constant dense<-1.100000e+10>
// CHECK: stablehlo.select %{{.*}}, %[[S]], %[[LOW]]
// CHECK: %[[X:.*]] = stablehlo.select
// CHECK: stablehlo.reduce(%[[X]] init: {{.*}}) applies stablehlo.maximum
// CHECK: %[[ABOVE:.*]] = stablehlo.maximum %[[MAX]]
// CHECK: %[[BASE:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[ABOVE]] : tensor<64xi1>
// CHECK-NEXT: %[[SIZE:.*]] = stablehlo.abs %[[BASE]]
// CHECK: %[[LARGE:.*]] = stablehlo.compare GE, %[[SIZE]]
// CHECK: %[[LOGITS:.*]] = stablehlo.divide %[[X]]
// CHECK-NEXT: %[[LESS:.*]] = stablehlo.subtract %[[LOGITS]]
// CHECK: %[[NEAR:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[X]] {xgpu.rare} : tensor<64x64xi1>
// CHECK: %[[BEFORE:.*]] = stablehlo.select %[[LARGE]], %{{.*}}, %[[MAX]] {xgpu.rare}
// CHECK: %[[KEPT:.*]] = stablehlo.select %[[LARGE]], %{{.*}}, %[[BASE]] {xgpu.rare}
// CHECK: %[[ROUNDED:.*]] = stablehlo.multiply %[[KEPT]]
// CHECK-NEXT: %[[OF_ROWS:.*]] = stablehlo.broadcast_in_dim %[[ROUNDED]]
// CHECK: %[[PRODUCT:.*]] = stablehlo.multiply %[[NEAR]]
// CHECK-NEXT: %[[EXPONENT:.*]] = stablehlo.subtract %[[PRODUCT]], %[[OF_ROWS]]
// CHECK: %[[P:.*]] = stablehlo.power %{{.*}}, %[[EXPONENT]] {xgpu.weight}
// CHECK: %[[PRODUCT_BEFORE:.*]] = stablehlo.multiply %[[BEFORE]]
// CHECK-NEXT: %[[CHANGE:.*]] = stablehlo.subtract %[[PRODUCT_BEFORE]], %[[ROUNDED]]
// CHECK: %[[SCALE:.*]] = stablehlo.power %{{.*}}, %[[CHANGE]] {xgpu.weight} : tensor<64xf32>
// CHECK-NEXT: stablehlo.multiply %[[TOTAL]], %[[SCALE]]

// One branch has all three choices of both rows of a thread; exponents are one operation.
// EMITTED: %[[TAKEN:.*]] = arith.ori {{.*}} : i1
// EMITTED-NEXT: %[[CHOSEN:.*]]:36 = scf.if %[[TAKEN]]
// EMITTED-NOT: arith.divf
// EMITTED: } else {
// EMITTED-NEXT: scf.yield
// EMITTED-NEXT: }
// EMITTED: math.fma %[[CHOSEN]]#{{[0-9]+}}, %{{.*}}, %{{.*}} : f32

module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<2x72x64xbf16>, %arg1: tensor<2x72x64xbf16>, %arg2: tensor<2x72x64xbf16>) -> tensor<2x72x64xbf16> attributes {xgpu.emitter = "attention", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, stages = 2, groups = 1, blocks = 2, folded = true, overlap = true, steady = false>} {
    %0 = "xgpu.chain"(%arg0, %arg1, %arg2) ({
    ^bb0(%q: tensor<2x72x64xbf16>, %k: tensor<2x72x64xbf16>, %v: tensor<2x72x64xbf16>):
      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x72x64xbf16>, tensor<2x72x64xbf16>) -> tensor<2x72x72xf32>
      %i = stablehlo.iota dim = 1 : tensor<2x72x72xi32>
      %j = stablehlo.iota dim = 2 : tensor<2x72x72xi32>
      %c = stablehlo.compare GE, %i, %j : (tensor<2x72x72xi32>, tensor<2x72x72xi32>) -> tensor<2x72x72xi1>
      %low = stablehlo.constant dense<-1.0e9> : tensor<2x72x72xf32>
      %eleven = stablehlo.constant dense<11.0> : tensor<2x72x72xf32>
      %l = stablehlo.divide %s, %eleven : tensor<2x72x72xf32>
      %x = stablehlo.select %c, %l, %low : tensor<2x72x72xi1>, tensor<2x72x72xf32>
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
