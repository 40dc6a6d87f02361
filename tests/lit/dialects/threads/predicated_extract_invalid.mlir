// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @condition(%c: i8, %zero: f32, %t: tensor<f32>) {
  // expected-error @+1 {{operand 'condition': expected i1, got i8}}
  %0 = "xgpu.predicated_extract"(%c, %zero, %t) : (i8, f32, tensor<f32>) -> f32
  return
}

// -----

func.func @fallback(%c: i1, %zero: f64, %t: tensor<f32>) {
  // expected-error @+1 {{expected an element of type f32 for tensor<f32>, got f64}}
  %0 = "xgpu.predicated_extract"(%c, %zero, %t) : (i1, f64, tensor<f32>) -> f64
  return
}

// -----

func.func @result(%c: i1, %zero: f32, %t: tensor<f32>) {
  // expected-error @+1 {{expected a result of the fallback's type f32, got f64}}
  %0 = "xgpu.predicated_extract"(%c, %zero, %t) : (i1, f32, tensor<f32>) -> f64
  return
}

// -----

func.func @rank(%c: i1, %zero: f32, %t: tensor<4x4xf32>, %i: index) {
  // expected-error @+1 {{expected 2 indices for tensor<4x4xf32>, got 1}}
  %0 = "xgpu.predicated_extract"(%c, %zero, %t, %i) : (i1, f32, tensor<4x4xf32>, index) -> f32
  return
}
