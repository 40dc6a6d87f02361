// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @nothing(%board: tensor<4xi64>, %i: index) {
  // expected-error @+1 {{'xgpu.publish' expected a message of at least 1 value, got 0}}
  %0 = "xgpu.publish"(%board, %i) : (tensor<4xi64>, index) -> tensor<4xi64>
  return
}

// -----

func.func @words(%board: tensor<4xi32>, %i: index, %x: f32) {
  // expected-error @+1 {{expected words of i64 in one dimension, got tensor<4xi32>}}
  %0 = "xgpu.publish"(%board, %i, %x) : (tensor<4xi32>, index, f32) -> tensor<4xi32>
  return
}

// -----

func.func @rank(%board: tensor<2x2xi64>, %i: index, %x: f32) {
  // expected-error @+1 {{expected words of i64 in one dimension, got tensor<2x2xi64>}}
  %0 = "xgpu.publish"(%board, %i, %x) : (tensor<2x2xi64>, index, f32) -> tensor<2x2xi64>
  return
}

// -----

// Two parts of 64 bits, and one more: five words.

func.func @room(%board: tensor<4xi64>, %i: index, %z: complex<f64>, %x: i8) {
  // expected-error @+1 {{expected room for a message of 5 words, got tensor<4xi64>}}
  %0 = "xgpu.publish"(%board, %i, %z, %x) : (tensor<4xi64>, index, complex<f64>, i8) -> tensor<4xi64>
  return
}

// -----

func.func @result(%board: tensor<4xi64>, %i: index, %x: f32) {
  // expected-error @+1 {{expected a result of the board's type tensor<4xi64>, got tensor<5xi64>}}
  %0 = "xgpu.publish"(%board, %i, %x) : (tensor<4xi64>, index, f32) -> tensor<5xi64>
  return
}

// -----

func.func @values(%board: tensor<4xi64>, %i: index) {
  // expected-error @+1 {{operand 'values': expected an integer, floating-point or complex type, got index}}
  %0 = "xgpu.publish"(%board, %i, %i) : (tensor<4xi64>, index, index) -> tensor<4xi64>
  return
}
