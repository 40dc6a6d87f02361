// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{attribute 'xgpu.block': expected sizes from 1 to (1024, 1024, 64)}}
func.func @negative() attributes {xgpu.kernel, xgpu.block = array<i64: 128, -1, 1>} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.block': expected at most 1024 together}}
func.func @too_many_threads() attributes {xgpu.kernel, xgpu.block = array<i64: 512, 4, 1>} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.grid': expected array<i64: x, y, z>}}
func.func @wrong_width() attributes {xgpu.kernel, xgpu.grid = array<i32: 1, 1, 1>} {
  return
}

// -----

// expected-error @+1 {{argument 0, attribute 'xgpu.range': expected array<i64: lower, upper>}}
func.func @range_of_other_width(%i: index {xgpu.range = array<si8: 0, 7>}) {
  return
}

// -----

// expected-error @+1 {{argument 0, attribute 'xgpu.range': expected array<i64: lower, upper>}}
func.func @range_of_three(%i: index {xgpu.range = array<i64: 1, 2, 3>}) {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.index_bits': expected 32 : i64 or 64 : i64}}
func.func @index_bits() attributes {xgpu.index_bits = 16 : i64} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.inputs': expected a count of type i64}}
func.func @inputs() attributes {xgpu.inputs = -1 : i64} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.overwrites': expected array<i64: ...> of outputs}}
func.func @overwrites() attributes {xgpu.overwrites = array<i64: -1>} {
  return
}

// -----

func.func @huge_vector(%i: index) {
  // expected-error @+1 {{vectors have at most 1024 elements}}
  %0 = arith.constant dense<0.0> : vector<65536xf32>
  return
}
