// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Steps add up the products of one left tile with a tile of each right operand; what follows is computed from both sums.
// CHECK-LABEL: func.func @gated(
// CHECK: %[[SUMS:.*]]:2 = "xgpu.steps"(%[[ZERO:.*]], %[[ZERO]]) ({
// CHECK-NEXT: ^bb0(%[[K:.*]]: index, %[[GATE:.*]]: tensor<64x64xf32>, %[[UP:.*]]: tensor<64x64xf32>):
// CHECK-NEXT: %[[X:.*]] = "xgpu.tile"(%arg0, {{.*}}, %[[K]])
// CHECK-NEXT: %[[W:.*]] = "xgpu.tile"(%arg1, {{.*}}, %[[K]])
// CHECK-NEXT: %[[P:.*]] = stablehlo.dot_general %[[X]], %[[W]], contracting_dims = [1] x [0]
// CHECK-NEXT: %[[A:.*]] = stablehlo.add %[[GATE]], %[[P]]
// CHECK-NEXT: %[[V:.*]] = "xgpu.tile"(%arg2, {{.*}}, %[[K]])
// CHECK-NEXT: %[[Q:.*]] = stablehlo.dot_general %[[X]], %[[V]], contracting_dims = [1] x [0]
// CHECK-NEXT: %[[B:.*]] = stablehlo.add %[[UP]], %[[Q]]
// CHECK-NEXT: "xgpu.yield"(%[[A]], %[[B]])
// CHECK: %[[FIRST:.*]] = stablehlo.convert %[[SUMS]]#0
// CHECK: %[[SECOND:.*]] = stablehlo.convert %[[SUMS]]#1
// CHECK: %[[SIGMOID:.*]] = stablehlo.logistic %[[FIRST]]
// CHECK-NEXT: %[[R:.*]] = stablehlo.multiply %[[SIGMOID]], %[[SECOND]]
// CHECK-NEXT: "xgpu.insert_tile"(%[[R]],

// One instruction multiplies by both tiles, of 64 columns each, which lie side by side: a thread has 32 sums of each.
// The transaction that is waited for has the bytes of three tiles of 8 KiB.
// EMITTED-LABEL: func.func @gated(
// EMITTED: "xgpu.mbarrier_init"
// EMITTED: "xgpu.warpgroup_mma"{{.*}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
// EMITTED: %[[BYTES:.*]] = arith.constant 24576 : i32
// EMITTED: "xgpu.mbarrier_expect"({{.*}}, %[[BYTES]])
// EMITTED-COUNT-3: "xgpu.tensor_load"
// EMITTED-NOT: "xgpu.tensor_load"
module attributes {xgpu.level = "fusions"} {
  func.func private @gated(%x: tensor<128x64xbf16>, %w: tensor<64x64xbf16>, %v: tensor<64x64xbf16>) -> tensor<128x64xbf16> attributes {xgpu.emitter = "product", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, tile_k = 64, stages = 2, groups = 1, blocks = 2, cluster = 1, staged = true, band = 1>} {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {xgpu.hero, xgpu.joined = 0 : i64} : (tensor<128x64xbf16>, tensor<64x64xbf16>) -> tensor<128x64xbf16>
    %1 = stablehlo.logistic %0 : tensor<128x64xbf16>
    %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] {xgpu.hero, xgpu.joined = 0 : i64} : (tensor<128x64xbf16>, tensor<64x64xbf16>) -> tensor<128x64xbf16>
    %3 = stablehlo.multiply %1, %2 : tensor<128x64xbf16>
    return %3 : tensor<128x64xbf16>
  }
  func.func @main(%x: tensor<128x64xbf16>, %w: tensor<64x64xbf16>, %v: tensor<64x64xbf16>) -> tensor<128x64xbf16> {
    %0 = call @gated(%x, %w, %v) : (tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<128x64xbf16>
    return %0 : tensor<128x64xbf16>
  }
}
