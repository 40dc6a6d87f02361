// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles,multicast-tiles,schedule-tiles,place-tiles,lower-tiles | FileCheck %s

// The products of a step are carried to the next one, which waits for them once it has started its own. Copies are two
// steps ahead, into a buffer that the step before the last one has read.
// CHECK: scf.for {{.*}} -> (vector<128xf32>, i32) {
// CHECK: "xgpu.sync_threads"()
// CHECK: "xgpu.async_copy"
// CHECK: "xgpu.warpgroup_commit"()
// CHECK-NEXT: %[[SUMS:.*]] = "xgpu.warpgroup_wait"({{.*}}) {pending = 1 : i64} : (vector<128xf32>) -> vector<128xf32>
// CHECK: scf.yield %[[SUMS]]
// CHECK: "xgpu.warpgroup_wait"({{.*}}) {pending = 0 : i64} : (vector<128xf32>) -> vector<128xf32>
func.func @alone(%x: tensor<128x640xbf16>, %w: tensor<640x256xbf16>, %out: tensor<128x256xf32>) -> tensor<128x256xf32> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 256>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<128x256xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<128x256xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<128x256xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 64 + s1), d0 in [0, 9], s0 in [0, 127], s1 in [0, 63]>} : (tensor<128x640xbf16>, index) -> tensor<128x64xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 64 + s0, s1), d0 in [0, 9], s0 in [0, 63], s1 in [0, 255]>} : (tensor<640x256xbf16>, index) -> tensor<64x256xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x256xbf16>) -> tensor<128x256xf32>
      %next = stablehlo.add %sum, %p : tensor<128x256xf32>
      "xgpu.yield"(%next) : (tensor<128x256xf32>) -> ()
    }) {count = 10 : i64} : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 255]>} : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    "xgpu.yield"(%u) : (tensor<128x256xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<128x256xf32>) -> tensor<128x256xf32>
  return %r : tensor<128x256xf32>
}
