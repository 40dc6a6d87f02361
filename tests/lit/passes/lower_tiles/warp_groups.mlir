// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles,schedule-tiles,place-tiles,lower-tiles | FileCheck %s

// Writes of threads to what warp groups read are fenced before the block meets. Instructions of a product follow each
// other without anything between: two for 32 contracted elements, then eight whose left operand is in registers.
// CHECK: "xgpu.async_wait"
// CHECK: "xgpu.fence"() {kind = "async"}
// CHECK-NEXT: "xgpu.sync_threads"()
// CHECK-NOT: "xgpu.load_matrix"
// CHECK: "xgpu.warpgroup_fence"()
// CHECK: %[[FIRST:.*]] = "xgpu.warpgroup_mma"({{.*}}) {{.*}}a_layout = {group = 512 : i64, panel = 0 : i64, swizzle = 64 : i64, transposed = false}{{.*}}b_layout = {group = 1024 : i64, panel = 4096 : i64, swizzle = 128 : i64, transposed = true}{{.*}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
// CHECK-NEXT: arith.constant
// CHECK-NEXT: %[[SECOND:.*]] = "xgpu.warpgroup_mma"(%[[FIRST]],
// CHECK-NEXT: "xgpu.warpgroup_commit"()
// CHECK-NEXT: "xgpu.warpgroup_wait"(%[[SECOND]]) {pending = 0 : i64}
// CHECK-NOT: "xgpu.sync_threads"()
// CHECK: "xgpu.warpgroup_fence"()
// CHECK-COUNT-8: "xgpu.warpgroup_mma"{{.*}} : (vector<32xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<32xf32>
// CHECK: "xgpu.warpgroup_commit"()
// CHECK-NEXT: "xgpu.warpgroup_wait"
// CHECK-NOT: "xgpu.mma"
func.func @chained(%x: tensor<64x32xbf16>, %w: tensor<32x128xbf16>, %v: tensor<128x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 127]>} : (tensor<32x128xbf16>) -> tensor<32x128xbf16>
    %c = "xgpu.tile"(%v) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 63]>} : (tensor<128x64xbf16>) -> tensor<128x64xbf16>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x128xbf16>) -> tensor<64x128xf32>
    %h = stablehlo.convert %p : (tensor<64x128xf32>) -> tensor<64x128xbf16>
    %q = stablehlo.dot_general %h, %c, contracting_dims = [1] x [0] : (tensor<64x128xbf16>, tensor<128x64xbf16>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%q, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
