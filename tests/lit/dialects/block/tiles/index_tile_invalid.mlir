// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @numbers(%i: index) {
  // expected-error @+1 {{'xgpu.index_tile' expected 1 numbers of block and step, one for each dimension of the map}}
  %0 = "xgpu.index_tile"() {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : () -> tensor<8xi32>
  return
}

// -----

func.func @results(%i: index) {
  // expected-error @+1 {{expected a map to one number, without constraints, got (d0)[s0] -> (d0, s0)}}
  %0 = "xgpu.index_tile"(%i) {map = #xgpu.map<(d0)[s0] -> (d0, s0), d0 in [0, 3], s0 in [0, 7]>} : (index) -> tensor<8xi32>
  return
}

// -----

func.func @shape(%i: index) {
  // expected-error @+1 {{expected a tile of shape [8], that of the range variables from 0, got tensor<9xi32>}}
  %0 = "xgpu.index_tile"(%i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (index) -> tensor<9xi32>
  return
}

// -----

func.func @elements(%i: index) {
  // expected-error @+1 {{expected a tile of integers or floats, got tensor<8xcomplex<f32>>}}
  %0 = "xgpu.index_tile"(%i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 3], s0 in [0, 7]>} : (index) -> tensor<8xcomplex<f32>>
  return
}
