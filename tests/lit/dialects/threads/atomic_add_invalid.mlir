// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @scalar(%x: f32, %t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{operand 'values': expected a vector of one dimension, got f32}}
  %0 = "xgpu.atomic_add"(%x, %t, %i) : (f32, tensor<8xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @element(%x: vector<4xf64>, %t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected floats for a tensor of one dimension of them, got vector<4xf64> and tensor<8xf32>}}
  %0 = "xgpu.atomic_add"(%x, %t, %i) : (vector<4xf64>, tensor<8xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @integers(%x: vector<4xi32>, %t: tensor<8xi32>, %i: index) {
  // expected-error @+1 {{expected floats for a tensor of one dimension of them, got vector<4xi32> and tensor<8xi32>}}
  %0 = "xgpu.atomic_add"(%x, %t, %i) : (vector<4xi32>, tensor<8xi32>, index) -> tensor<8xi32>
  return
}

// -----

func.func @result(%x: vector<4xf32>, %t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected a result of the tensor's type tensor<8xf32>, got tensor<9xf32>}}
  %0 = "xgpu.atomic_add"(%x, %t, %i) : (vector<4xf32>, tensor<8xf32>, index) -> tensor<9xf32>
  return
}
