// RUN: xgpu-opt %s -p assign-products,chain-tiles | FileCheck %s
// RUN: xgpu-opt %s -p assign-products,chain-tiles,assign-layouts,swizzle-tiles,pipeline-tiles,schedule-tiles,place-tiles | FileCheck %s --check-prefix=MEMORY

// Warps of a group lie one below the other, and the left operand of the second product stays in registers.
// CHECK: stablehlo.dot_general {{.*}} {xgpu.place = "fragments", xgpu.product = "wgmma", xgpu.warps = array<i64: 4, 1>}
// CHECK: stablehlo.convert {{.*}} {xgpu.place = "fragments"}
// CHECK: stablehlo.dot_general {{.*}} {xgpu.place = "fragments", xgpu.product = "wgmma", xgpu.warps = array<i64: 4, 1>}

// Rows of 64 bytes, two panels of rows of 128, and rows of 128, all swizzled, at multiples of 1,024 bytes.
// MEMORY-DAG: "xgpu.tile"(%arg0) {{.*}}xgpu.layout = array<i64: 32, 1>, xgpu.offset = {{[0-9]+}} : i64, xgpu.place = "shared", xgpu.swizzle = array<i64: 2, 3, 6>
// MEMORY-DAG: "xgpu.tile"(%arg1) {{.*}}xgpu.layout = array<i64: 64, 1>, xgpu.offset = {{[0-9]+}} : i64, xgpu.panel = array<i64: 1, 64, 2048>, xgpu.place = "shared", xgpu.swizzle = array<i64: 3, 3, 6>
// MEMORY-DAG: "xgpu.tile"(%arg2) {{.*}}xgpu.layout = array<i64: 64, 1>, xgpu.offset = {{[0-9]+}} : i64, xgpu.place = "shared", xgpu.swizzle = array<i64: 3, 3, 6>
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
