// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @of_an_integer(%i: i32) -> i32 {
  // expected-error @+2 {{operand 'argument': expected a floating-point type, got i32}}
  // expected-error @+1 {{result 'value': expected a floating-point type, got i32}}
  %0 = "xgpu.erf_inv"(%i) : (i32) -> i32
  return %0 : i32
}

// -----

func.func @of_two_types(%x: f32) -> f64 {
  // expected-error @+1 {{'xgpu.erf_inv' expected a result of the operand's type f32, got f64}}
  %0 = "xgpu.erf_inv"(%x) : (f32) -> f64
  return %0 : f64
}
