// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{attribute 'xgpu.scratch': expected the last output to take the place of the last input}}
func.func @outputs(%x: tensor<8xi64>, %y: tensor<8xi64>) -> tensor<8xi64>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.scratch = 8 : i64} {
  return %y : tensor<8xi64>
}

// -----

// expected-error @+1 {{attribute 'xgpu.scratch': expected the last output to take the place of the last input}}
func.func @inputs(%x: tensor<4xi64>, %y: tensor<8xi64>, %z: tensor<4xi64>) -> tensor<4xi64>
    attributes {xgpu.kernel, xgpu.inputs = 2 : i64, xgpu.aliases = array<i64: 0>, xgpu.scratch = 8 : i64} {
  return %z : tensor<4xi64>
}

// -----

// expected-error @+1 {{attribute 'xgpu.scratch': expected the last input to be of type tensor<9xi64>, got tensor<8xi64>}}
func.func @words(%x: tensor<8xi64>, %y: tensor<8xi64>) -> tensor<8xi64>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: 0>, xgpu.scratch = 9 : i64} {
  return %y : tensor<8xi64>
}
