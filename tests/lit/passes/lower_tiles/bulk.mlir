// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles,multicast-tiles,schedule-tiles,place-tiles,lower-tiles | FileCheck %s

// Each block makes a tensor map of each array, in memory of its own. Then one thread copies the first steps' boxes.
// CHECK-LABEL: func.func @many(%arg0: tensor<64x280xbf16>, %arg1: tensor<280x64xbf16>, %arg2: tensor<64x64xf32>, %arg3: tensor<256xi8>)
// CHECK-DAG: "xgpu.encode_tensor_map"({{.*}}) {box = array<i64: 64, 32>, element = bf16, shape = array<i64: 64, 280>, strides = array<i64: 560>, swizzle = "64"}
// CHECK-DAG: "xgpu.encode_tensor_map"({{.*}}) {box = array<i64: 32, 64>, element = bf16, shape = array<i64: 280, 64>, strides = array<i64: 128>, swizzle = "128"}
// CHECK: "xgpu.mbarrier_init"({{.*}}) {count = 1 : i64}
// CHECK: "xgpu.fence"() {kind = "mbarrier_init"}
// CHECK: "xgpu.sync_threads"()
// CHECK: scf.if
// CHECK: "xgpu.acquire_tensor_map"
// CHECK: "xgpu.mbarrier_expect"
// CHECK-COUNT-2: "xgpu.tensor_load"

// A step waits for its buffer, and all meet before the next copies start. No thread wrote what warp groups multiply.
// CHECK: scf.for
// CHECK-NEXT: {{.*}}
// CHECK: "xgpu.mbarrier_wait"
// CHECK-NOT: "xgpu.fence"
// CHECK: "xgpu.sync_threads"()
// CHECK: "xgpu.mbarrier_expect"
// CHECK-COUNT-2: "xgpu.tensor_load"
// CHECK: "xgpu.warpgroup_mma"
// CHECK-NOT: "xgpu.sync_threads"()
// CHECK: scf.yield
func.func @many(%x: tensor<64x280xbf16>, %w: tensor<280x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<64x64xf32>
    %total = "xgpu.steps"(%zero) ({
    ^bb0(%s: index, %sum: tensor<64x64xf32>):
      %a = "xgpu.tile"(%x, %s) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 32 + s1), d0 in [0, 8], s0 in [0, 63], s1 in [0, 31], d0 * 32 + s1 in [0, 279]>, xgpu.copy = "bulk"} : (tensor<64x280xbf16>, index) -> tensor<64x32xbf16>
      %b = "xgpu.tile"(%w, %s) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 32 + s0, s1), d0 in [0, 8], s0 in [0, 31], s1 in [0, 63], d0 * 32 + s0 in [0, 279]>, xgpu.copy = "bulk"} : (tensor<280x64xbf16>, index) -> tensor<32x64xbf16>
      %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
      %next = stablehlo.add %sum, %p : tensor<64x64xf32>
      "xgpu.yield"(%next) : (tensor<64x64xf32>) -> ()
    }) {count = 9 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%total, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
