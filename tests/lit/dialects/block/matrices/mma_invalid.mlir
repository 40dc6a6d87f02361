// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @element(%0: vector<4xi32>, %1: vector<2xi32>, %2: vector<4xf32>) {
  // expected-error @+1 {{'xgpu.mma' attribute 'a_element': expected one of f16, bf16, tf32, f8E4M3FN, f8E5M2, si8, ui8, f64, got f32}}
  %r = "xgpu.mma"(%0, %1, %2) {a_element = f32, b_element = f32} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

func.func @elements(%0: vector<4xi32>, %1: vector<2xi32>, %2: vector<4xf32>) {
  // expected-error @+1 {{'xgpu.mma' attribute 'b_element': expected bf16, as the left operand, got f16}}
  %r = "xgpu.mma"(%0, %1, %2) {a_element = bf16, b_element = f16} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

func.func @fragments(%0: vector<2xi32>, %1: vector<4xi32>, %2: vector<4xf32>) {
  // expected-error @+1 {{'xgpu.mma' expected (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>, got (vector<2xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>}}
  %r = "xgpu.mma"(%0, %1, %2) {a_element = bf16, b_element = bf16} : (vector<2xi32>, vector<4xi32>, vector<4xf32>) -> vector<4xf32>
  return
}
