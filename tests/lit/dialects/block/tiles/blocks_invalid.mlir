// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_grid(%out: tensor<8xf32>) {
  // expected-error @+1 {{'xgpu.blocks' attribute 'grid': expected numbers of blocks from 1 to 2147483647, got ()}}
  %0 = "xgpu.blocks"(%out) ({
  ^bb0(%array: tensor<8xf32>):
    "xgpu.yield"(%array) : (tensor<8xf32>) -> ()
  }) {grid = array<i64>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @no_blocks(%out: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'grid': expected numbers of blocks from 1 to 2147483647, got (4, 0)}}
  %0 = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %j: index, %array: tensor<8xf32>):
    "xgpu.yield"(%array) : (tensor<8xf32>) -> ()
  }) {grid = array<i64: 4, 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @body_arguments(%out: tensor<8xf32>) {
  // expected-error @+1 {{expected body arguments (index, index, tensor<8xf32>), got (index, tensor<8xf32>)}}
  %0 = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<8xf32>):
    "xgpu.yield"(%array) : (tensor<8xf32>) -> ()
  }) {grid = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @results(%out: tensor<8xf32>) {
  // expected-error @+1 {{expected results of types (tensor<8xf32>), those carried, got (tensor<8xf64>)}}
  %0 = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<8xf32>):
    "xgpu.yield"(%array) : (tensor<8xf32>) -> ()
  }) {grid = array<i64: 4>} : (tensor<8xf32>) -> tensor<8xf64>
  return
}

// -----

func.func @yields_nothing(%out: tensor<8xf32>) {
  // expected-error @+1 {{expected xgpu.yield of (tensor<8xf32>), got ()}}
  %0 = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: tensor<8xf32>):
    "xgpu.yield"() : () -> ()
  }) {grid = array<i64: 4>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @no_array(%out: f32) {
  // expected-error @+2 {{operand 'outputs': expected a tensor of static shape, got f32}}
  // expected-error @+1 {{result 'written': expected a tensor of static shape, got f32}}
  %0 = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %array: f32):
    "xgpu.yield"(%array) : (f32) -> ()
  }) {grid = array<i64: 4>} : (f32) -> f32
  return
}

// -----

func.func @no_body(%out: tensor<8xf32>) {
  // expected-error @+1 {{'xgpu.blocks' expected 1 regions, got 0}}
  %0 = "xgpu.blocks"(%out) {grid = array<i64: 4>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}
