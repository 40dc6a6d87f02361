// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @numbers(%array: tensor<32xf32>) {
  // expected-error @+1 {{'xgpu.tile' expected 1 numbers of block and step, one for each dimension of the map, got 0}}
  %0 = "xgpu.tile"(%array) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<32xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @rank(%array: tensor<8x4xf32>, %i: index) {
  // expected-error @+1 {{expected a map to 2 indices for tensor<8x4xf32>, got 1}}
  %0 = "xgpu.tile"(%array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<8x4xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @shape(%array: tensor<32xf32>, %i: index) {
  // expected-error @+1 {{expected a tile of shape [8], that of the range variables from 0, got tensor<9xf32>}}
  %0 = "xgpu.tile"(%array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<32xf32>, index) -> tensor<9xf32>
  return
}

// -----

func.func @not_from_0(%array: tensor<32xf32>, %i: index) {
  // expected-error @+1 {{expected a tile of shape [8], that of the range variables from 0, got tensor<8xf32>}}
  %0 = "xgpu.tile"(%array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0 - 1), d0 in [0, 3], s0 in [1, 8]>} : (tensor<32xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @elements(%array: tensor<32xf32>, %i: index) {
  // expected-error @+1 {{expected a tile of the array's elements f32, got tensor<8xf16>}}
  %0 = "xgpu.tile"(%array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<32xf32>, index) -> tensor<8xf16>
  return
}

// -----

func.func @outside(%array: tensor<31xf32>, %i: index) {
  // expected-error @+1 {{expected indices within tensor<31xf32> where the map's constraints hold, got}}
  %0 = "xgpu.tile"(%array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<31xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @number_type(%array: tensor<32xf32>, %i: i32) {
  // expected-error @+1 {{operand 'at': expected index, got i32}}
  %0 = "xgpu.tile"(%array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<32xf32>, i32) -> tensor<8xf32>
  return
}
