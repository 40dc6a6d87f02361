// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @numbers(%array: tensor<8x32xf32>, %table: tensor<4xi32>) {
  // expected-error @+1 {{'xgpu.gather_tile' expected 2 numbers, one for each dimension of the map, got 0 of block and step and 1 of tables}}
  %0 = "xgpu.gather_tile"(%array, %table) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>, numbers = [#xgpu.map<(d0)[s0] -> (d0), d0 in [0, 3], s0 in [0, 31]>]} : (tensor<8x32xf32>, tensor<4xi32>) -> tensor<32xf32>
  return
}

// -----

func.func @floats(%array: tensor<8x32xf32>, %table: tensor<4xf32>, %i: index) {
  // expected-error @+1 {{expected a table of integers, got tensor<4xf32>}}
  %0 = "xgpu.gather_tile"(%array, %table, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>, numbers = [#xgpu.map<(d0)[s0] -> (d0), d0 in [0, 3], s0 in [0, 31]>]} : (tensor<8x32xf32>, tensor<4xf32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @table(%array: tensor<8x32xf32>, %table: tensor<4x4xi32>, %i: index) {
  // expected-error @+1 {{expected 'numbers' that lead to 2 indices for tensor<4x4xi32>, got 1}}
  %0 = "xgpu.gather_tile"(%array, %table, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>, numbers = [#xgpu.map<(d0)[s0] -> (d0), d0 in [0, 3], s0 in [0, 31]>]} : (tensor<8x32xf32>, tensor<4x4xi32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @other_tile(%array: tensor<8x32xf32>, %table: tensor<4xi32>, %i: index) {
  // expected-error @+1 {{expected 'numbers' of the map's first 1 dimensions and its range variables, got (d0)[s0] -> (d0)}}
  %0 = "xgpu.gather_tile"(%array, %table, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>, numbers = [#xgpu.map<(d0)[s0] -> (d0), d0 in [0, 3], s0 in [0, 30]>]} : (tensor<8x32xf32>, tensor<4xi32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @below_0(%array: tensor<8x32xf32>, %table: tensor<4xi32>, %i: index) {
  // expected-error @+1 {{expected numbers from 0, got a map with d1 in [1, 7]}}
  %0 = "xgpu.gather_tile"(%array, %table, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [1, 7], s0 in [0, 31]>, numbers = [#xgpu.map<(d0)[s0] -> (d0), d0 in [0, 3], s0 in [0, 31]>]} : (tensor<8x32xf32>, tensor<4xi32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @no_maps(%array: tensor<8x32xf32>, %table: tensor<4xi32>, %i: index) {
  // expected-error @+1 {{attribute 'numbers': expected an array of indexing maps, got [1]}}
  %0 = "xgpu.gather_tile"(%array, %table, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>, numbers = [1]} : (tensor<8x32xf32>, tensor<4xi32>, index) -> tensor<32xf32>
  return
}

// -----

func.func @outside(%array: tensor<7x32xf32>, %table: tensor<4xi32>, %i: index) {
  // expected-error @+1 {{expected indices within tensor<7x32xf32> where the map's constraints hold, got}}
  %0 = "xgpu.gather_tile"(%array, %table, %i) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 7], s0 in [0, 31]>, numbers = [#xgpu.map<(d0)[s0] -> (d0), d0 in [0, 3], s0 in [0, 31]>]} : (tensor<7x32xf32>, tensor<4xi32>, index) -> tensor<32xf32>
  return
}
