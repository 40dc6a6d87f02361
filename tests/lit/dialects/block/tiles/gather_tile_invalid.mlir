// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @missing(%array: tensor<8x32xf32>, %numbers: tensor<32xi32>) {
  // expected-error @+1 {{'xgpu.gather_tile' expected 2 numbers, one for each dimension of the map, got 0 of block and step and 1 tiles}}
  %0 = "xgpu.gather_tile"(%array, %numbers) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>} : (tensor<8x32xf32>, tensor<32xi32>) -> tensor<32xf32>
  return
}

// -----

func.func @floats(%array: tensor<8x32xf32>, %numbers: tensor<32xf32>, %i: index) {
  // expected-error @+1 {{expected numbers that are integers, got tensor<32xf32>}}
  %0 = "xgpu.gather_tile"(%array, %numbers, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>} : (tensor<8x32xf32>, tensor<32xf32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @conditions(%array: tensor<8x32xf32>, %numbers: tensor<32xi1>, %i: index) {
  // expected-error @+1 {{expected numbers that are integers, got tensor<32xi1>}}
  %0 = "xgpu.gather_tile"(%array, %numbers, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>} : (tensor<8x32xf32>, tensor<32xi1>, index) -> tensor<32xf32>
  return
}

// -----

func.func @other_tile(%array: tensor<8x32xf32>, %numbers: tensor<31xi32>, %i: index) {
  // expected-error @+1 {{expected numbers for each element of the tile, of shape [32], got tensor<31xi32>}}
  %0 = "xgpu.gather_tile"(%array, %numbers, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>} : (tensor<8x32xf32>, tensor<31xi32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @from_1(%array: tensor<8x32xf32>, %numbers: tensor<32xi32>, %i: index) {
  // expected-error @+1 {{expected numbers from 0, got a map with d1 in [1, 7]}}
  %0 = "xgpu.gather_tile"(%array, %numbers, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [1, 7], s0 in [0, 31]>} : (tensor<8x32xf32>, tensor<32xi32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @outside(%array: tensor<7x32xf32>, %numbers: tensor<32xi32>, %i: index) {
  // expected-error @+1 {{expected indices within tensor<7x32xf32> where the map's constraints hold, got}}
  %0 = "xgpu.gather_tile"(%array, %numbers, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>} : (tensor<7x32xf32>, tensor<32xi32>, index) -> tensor<32xf32>
  return
}
