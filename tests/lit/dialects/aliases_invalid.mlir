// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{attribute 'xgpu.aliases': expected array<i64: ...> of inputs or -1, got array<i64: -2>}}
func.func @negative(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: -2>} {
  return %b : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected different numbers of the 1 inputs, or -1, got array<i64: 1>}}
func.func @no_input(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: 1>} {
  return %b : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected different numbers of the 1 inputs, or -1, got array<i64: 0, 0>}}
func.func @twice(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: 0, 0>} {
  return %b, %c : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{attribute 'xgpu.aliases': expected one number for each of the 1 outputs, got array<i64>}}
func.func @too_few(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64>} {
  return %b : tensor<4xf32>
}

// -----

// expected-error @+1 {{attribute 'xgpu.aliases': expected input 0 to be of its output's type tensor<4xf32>, got array<i64: 0>}}
func.func @types(%a: tensor<2xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: 0>} {
  return %b : tensor<4xf32>
}

// -----

// expected-error @+1 {{attribute 'xgpu.shared_bytes': expected a count of type i64, got -1 : i64}}
func.func @shared() attributes {xgpu.kernel, xgpu.shared_bytes = -1 : i64} {
  return
}
