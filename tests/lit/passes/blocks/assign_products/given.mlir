// RUN: xgpu-opt %s -p assign-products --split-input-file --verify-diagnostics

// What a person gives is kept, or refused where no such instruction multiplies the tiles.
func.func @rows(%x: tensor<32x32xbf16>, %w: tensor<32x64xbf16>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<32x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 31]>} : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    // expected-error @below {{attribute 'xgpu.product': expected another instruction: expected tiles that groups of 128 threads divide into parts of 64 rows}}
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : (tensor<32x32xbf16>, tensor<32x64xbf16>) -> tensor<32x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    "xgpu.yield"(%u) : (tensor<32x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

func.func @terms(%x: tensor<64x24xbf16>, %w: tensor<24x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 23]>} : (tensor<64x24xbf16>) -> tensor<64x24xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 23], s1 in [0, 63]>} : (tensor<24x64xbf16>) -> tensor<24x64xbf16>
    // expected-error @below {{expected a multiple of 16 contracted elements, got 24}}
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : (tensor<64x24xbf16>, tensor<24x64xbf16>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

func.func @types(%x: tensor<64x32xf32>, %w: tensor<32x64xf32>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xf32>) -> tensor<32x64xf32>
    // expected-error @below {{expected operands of bf16 or f16, both of the same, got f32 and f32}}
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

func.func @warps(%x: tensor<64x32xbf16>, %w: tensor<32x64xbf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xf32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
    // expected-error @below {{expected a multiple of 4 warps down, got 2}}
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {xgpu.product = "wgmma", xgpu.warps = array<i64: 2, 2>} : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "xgpu.yield"(%u) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

func.func @integers(%x: tensor<64x32xi32>, %w: tensor<32x64xi32>, %out: tensor<64x64xi32>) -> tensor<64x64xi32> attributes {xgpu.block = array<i64: 128, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 128>} {
  %r = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<64x64xi32>):
    %a = "xgpu.tile"(%x) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 31]>} : (tensor<64x32xi32>) -> tensor<64x32xi32>
    %b = "xgpu.tile"(%w) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 31], s1 in [0, 63]>} : (tensor<32x64xi32>) -> tensor<32x64xi32>
    // expected-error @below {{expected another instruction: expected operands of one of bf16, f16, f32}}
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {xgpu.product = "mma"} : (tensor<64x32xi32>, tensor<32x64xi32>) -> tensor<64x64xi32>
    %u = "xgpu.insert_tile"(%p, %array) {map = #xgpu.map<()[s0, s1] -> (s0, s1), s0 in [0, 63], s1 in [0, 63]>} : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    "xgpu.yield"(%u) : (tensor<64x64xi32>) -> ()
  }) {grid = array<i64: 1>} : (tensor<64x64xi32>) -> tensor<64x64xi32>
  return %r : tensor<64x64xi32>
}
