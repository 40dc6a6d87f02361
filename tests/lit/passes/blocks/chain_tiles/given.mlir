// RUN: xgpu-opt %s -p chain-tiles --split-input-file --verify-diagnostics | FileCheck %s

// A tile that would be read where it is needed is in shared memory if something is decided about it there.
// CHECK-LABEL: func.func @chosen
// CHECK: "xgpu.tile"{{.*}}xgpu.place = "computed"
// CHECK-LABEL: func.func @copied
// CHECK: "xgpu.tile"{{.*}}xgpu.copy = "async", xgpu.place = "shared"
// CHECK-LABEL: func.func @laid_out
// CHECK: "xgpu.tile"{{.*}}xgpu.layout = array<i64: 12, 1>, xgpu.place = "shared"
// CHECK-LABEL: func.func @swizzled
// CHECK: "xgpu.tile"{{.*}}xgpu.place = "shared", xgpu.swizzle
func.func @chosen(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%x, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func @copied(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>, xgpu.copy = "async"} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%x, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func @laid_out(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>, xgpu.layout = array<i64: 12, 1>} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%x, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func @swizzled(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>, xgpu.swizzle = array<i64: 1, 2, 4>} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%x, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// It cannot be anywhere else.

func.func @computed(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    // expected-error @below {{attribute 'xgpu.copy': expected 'xgpu.place' to be shared with it, got computed}}
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>, xgpu.copy = "async", xgpu.place = "computed"} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%x, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @carried(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 32>} {
  %0 = "xgpu.blocks"(%arg1) ({
  ^bb0(%i: index, %out: tensor<8x8xf32>):
    %x = "xgpu.tile"(%arg0, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>, xgpu.place = "shared"} : (tensor<8x8xf32>, index) -> tensor<4x8xf32>
    // expected-error @below {{attribute 'xgpu.place': expected shared or fragments for what steps carry, got computed}}
    %s = "xgpu.steps"(%x) ({
    ^bb0(%step: index, %c: tensor<4x8xf32>):
      "xgpu.yield"(%c) : (tensor<4x8xf32>) -> ()
    }) {count = 2 : i64, xgpu.place = ["computed"]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = "xgpu.insert_tile"(%s, %out, %i) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]>} : (tensor<4x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
    "xgpu.yield"(%1) : (tensor<8x8xf32>) -> ()
  }) {grid = array<i64: 2>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
