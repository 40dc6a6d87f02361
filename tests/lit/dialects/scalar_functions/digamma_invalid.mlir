// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @of_an_array(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{operand 'argument': expected a floating-point type, got tensor<4xf32>}}
  // expected-error @+1 {{result 'value': expected a floating-point type, got tensor<4xf32>}}
  %0 = "xgpu.digamma"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @of_two_types(%x: f32) -> f64 {
  // expected-error @+1 {{'xgpu.digamma' expected a result of the operand's type f32, got f64}}
  %0 = "xgpu.digamma"(%x) : (f32) -> f64
  return %0 : f64
}
