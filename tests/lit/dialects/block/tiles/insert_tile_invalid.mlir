// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @result(%tile: tensor<8xf32>, %array: tensor<32xf32>, %i: index) {
  // expected-error @+1 {{'xgpu.insert_tile' expected a result of the array's type tensor<32xf32>, got tensor<8xf32>}}
  %0 = "xgpu.insert_tile"(%tile, %array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<8xf32>, tensor<32xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @shape(%tile: tensor<4x2xf32>, %array: tensor<32xf32>, %i: index) {
  // expected-error @+1 {{expected a tile of shape [8], that of the range variables from 0, got tensor<4x2xf32>}}
  %0 = "xgpu.insert_tile"(%tile, %array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<4x2xf32>, tensor<32xf32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @outside(%tile: tensor<8xf32>, %array: tensor<30xf32>, %i: index) {
  // expected-error @+1 {{expected indices within tensor<30xf32> where the map's constraints hold, got}}
  %0 = "xgpu.insert_tile"(%tile, %array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<8xf32>, tensor<30xf32>, index) -> tensor<30xf32>
  return
}

// -----

func.func @no_tile(%array: tensor<32xf32>, %i: index) {
  // expected-error @+1 {{'xgpu.insert_tile' expected at least 2 operands, got 1}}
  %0 = "xgpu.insert_tile"(%array) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (tensor<32xf32>) -> tensor<32xf32>
  return
}
