// What lower-to-llvm refuses.

// RUN: xgpu-opt %s -p 'lower-to-llvm{target=host}' --split-input-file --verify-diagnostics

func.func @function(%x: f32) -> f32 {
  // expected-error @below {{'math.exp': has no lowering; expected expand-math to have run before}}
  %y = math.exp %x : f32
  return %y : f32
}

// -----

func.func @function_of_ours(%x: f32) -> f32 {
  // expected-error @below {{'xgpu.erf_inv': has no lowering; expected expand-math to have run before}}
  %y = "xgpu.erf_inv"(%x) : (f32) -> f32
  return %y : f32
}

// -----

func.func @loop(%n: index) {
  // expected-error @below {{'scf.for': has no lowering; expected lower-scf to have run before}}
  scf.for %i = %n to %n step %n {
    %number = arith.index_cast %i : index to i64
  }
  return
}

// -----

func.func @tensor(%i: index) -> f32 {
  // expected-error @below {{'arith.constant': expected a scalar or a vector, got tensor<2xf32>; run lower-tensors first}}
  %t = arith.constant dense<1.0> : tensor<2xf32>
  %x = tensor.extract %t[%i] : tensor<2xf32>
  return %x : f32
}

// -----

func.func @two_dimensions(%v: vector<2x2xf32>) -> f32 {
  // expected-error @below {{'vector.extract': expected vectors of one dimension, got vector<2x2xf32>}}
  %x = vector.extract %v[0, 0] : f32 from vector<2x2xf32>
  return %x : f32
}

// -----

func.func @outside_a_kernel() -> index {
  // expected-error @below {{'gpu.thread_id': expected to be in a kernel: no other function knows it on the host}}
  %t = gpu.thread_id x upper_bound 128
  return %t : index
}

// -----

func.func @unknown_size() -> index {
  // expected-error @below {{'gpu.grid_dim': dimension y needs attribute 'xgpu.grid' on its function}}
  %t = gpu.grid_dim y
  return %t : index
}

// -----

func.func @too_large() -> index attributes {xgpu.index_bits = 32 : i64} {
  // expected-error @below {{the constant 8589934592 does not fit i32, the width of index}}
  %c = arith.constant 8589934592 : index
  return %c : index
}
