// RUN: xgpu-opt %s -p assign-products | FileCheck %s
// RUN: xgpu-opt %s -p assign-products --remarks 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: xgpu-opt %s -p assign-products{target=sm_80} | FileCheck %s --check-prefix=OTHER

// Warp groups multiply tiles of 16 bits, 64 rows each, or groups side by side. Fewer rows, other types, and operands
// of which it is decided how they lie, are left to warps, and to threads what tensor cores do not multiply.
// CHECK-LABEL: func.func @groups
// CHECK: stablehlo.dot_general {{.*}} {xgpu.product = "wgmma"}
// CHECK-LABEL: func.func @beside
// CHECK: stablehlo.dot_general {{.*}} {xgpu.product = "wgmma"}
// CHECK-LABEL: func.func @rows
// CHECK: stablehlo.dot_general {{.*}} {xgpu.product = "mma"}
// CHECK-LABEL: func.func @wide
// CHECK: stablehlo.dot_general {{.*}} {xgpu.product = "mma"}
// CHECK-LABEL: func.func @whole
// CHECK: stablehlo.dot_general {{.*}} {xgpu.product = "fma"}
// CHECK-LABEL: func.func @laid_out
// CHECK: stablehlo.dot_general {{.*}} {xgpu.product = "mma"}
// CHECK-LABEL: func.func @given
// CHECK: stablehlo.dot_general {{.*}} {xgpu.product = "fma"}

// REMARK: warp groups do not multiply it: expected tiles that groups of 128 threads divide into parts of 64 rows, and 8 columns, got 32 x 64 and 128 threads
// REMARK: warp groups do not multiply it: expected operands of bf16 or f16, both of the same, got f32 and f32
// REMARK: warp groups do not multiply it: expected nothing to be decided about its operands, got 'xgpu.layout'

// OTHER: xgpu.product = "mma"
// OTHER-NOT: wgmma
func.func @groups(%x: tensor<128x32xbf16>, %w: tensor<32x64xbf16>, %out: tensor<128x64xf32>) -> tensor<128x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<128x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 31]>} : (tensor<128x32xbf16>) -> tensor<128x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x32xbf16>, tensor<32x64xbf16>) -> tensor<128x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 127], s1 in [0, 63]>} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
    "xgpu.yield"(%u) : (tensor<128x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}
func.func @beside(%x: tensor<64x32xf16>, %w: tensor<32x64xf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 256>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xf16>) -> tensor<64x32xf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf16>) -> tensor<32x64xf16>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xf16>, tensor<32x64xf16>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
func.func @rows(%x: tensor<32x32xbf16>, %w: tensor<32x64xbf16>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<32x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x64xbf16>) -> tensor<32x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    "xgpu.yield"(%u) : (tensor<32x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}
func.func @wide(%x: tensor<64x32xf32>, %w: tensor<32x64xf32>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>) -> tensor<32x64xf32>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
func.func @whole(%x: tensor<64x32xi32>, %w: tensor<32x64xi32>, %out: tensor<64x64xi32>) -> tensor<64x64xi32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xi32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xi32>) -> tensor<64x32xi32>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xi32>) -> tensor<32x64xi32>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xi32>, tensor<32x64xi32>) -> tensor<64x64xi32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    "xgpu.yield"(%u) : (tensor<64x64xi32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xi32>) -> tensor<64x64xi32>
  return %r : tensor<64x64xi32>
}
func.func @laid_out(%x: tensor<64x32xbf16>, %w: tensor<32x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>, xgpu.layout = array<i64: 40, 1>} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
func.func @given(%x: tensor<64x32xbf16>, %w: tensor<32x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {xgpu.product = "fma"} : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
