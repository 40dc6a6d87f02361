// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @operands(%c: i1, %x: f32) {
  // expected-error @+1 {{'xgpu.predicated_insert' expected at least 3 operands, got 2}}
  %0 = "xgpu.predicated_insert"(%c, %x) : (i1, f32) -> tensor<8xf32>
  return
}

// -----

func.func @scalar(%c: i1, %x: f64, %t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected an element of type f32 for tensor<8xf32>, got f64}}
  %0 = "xgpu.predicated_insert"(%c, %x, %t, %i) : (i1, f64, tensor<8xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @result(%c: i1, %x: f32, %t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected a result of the tensor's type tensor<8xf32>, got tensor<4xf32>}}
  %0 = "xgpu.predicated_insert"(%c, %x, %t, %i) : (i1, f32, tensor<8xf32>, index) -> tensor<4xf32>
  return
}

// -----

func.func @rank(%c: i1, %x: f32, %t: tensor<8xf32>) {
  // expected-error @+1 {{expected 1 indices for tensor<8xf32>, got 0}}
  %0 = "xgpu.predicated_insert"(%c, %x, %t) : (i1, f32, tensor<8xf32>) -> tensor<8xf32>
  return
}
