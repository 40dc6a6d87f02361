// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @of_integers(%t: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+2 {{operand 'argument': expected a floating-point type, or a tensor of one, got tensor<4xi32>}}
  // expected-error @+1 {{result 'value': expected a floating-point type, or a tensor of one, got tensor<4xi32>}}
  %0 = "xgpu.bessel_i0e"(%t) : (tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @of_two_shapes(%t: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{'xgpu.bessel_i0e' expected a result of the operand's type tensor<4xf32>, got tensor<5xf32>}}
  %0 = "xgpu.bessel_i0e"(%t) : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
