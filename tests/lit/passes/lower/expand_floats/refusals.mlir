// What expand-floats refuses.

// RUN: xgpu-opt %s -p expand-floats --split-input-file --verify-diagnostics

func.func @six_bits(%x: f6E3M2FN) -> f32 {
  // expected-error @below {{'arith.extf': operations on values of type f6E3M2FN are not supported}}
  %y = arith.extf %x : f6E3M2FN to f32
  return %y : f32
}

// -----

func.func @mode(%x: f32) -> bf16 {
  // expected-error @below {{'arith.truncf': expected to round to nearest, got rounding mode}}
  %y = arith.truncf %x toward_zero : f32 to bf16
  return %y : bf16
}

// -----

func.func @vector_remainder(%x: vector<4xf32>) -> vector<4xf32> {
  // expected-error @below {{'arith.remf': remainders of type vector<4xf32> are not supported}}
  %y = arith.remf %x, %x : vector<4xf32>
  return %y : vector<4xf32>
}

// -----

func.func @remainders_of_tensors(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{'arith.remf': remainders of type tensor<f32> are not supported}}
  %y = arith.remf %x, %x : tensor<f32>
  return %y : tensor<f32>
}
