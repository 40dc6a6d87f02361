// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @nothing(%board: tensor<4xi64>, %i: index) {
  // expected-error @+1 {{'xgpu.await' expected a message of at least 1 value, got 0}}
  "xgpu.await"(%board, %i) : (tensor<4xi64>, index) -> ()
  return
}

// -----

func.func @words(%board: tensor<4xf64>, %i: index) {
  // expected-error @+1 {{expected words of i64 in one dimension, got tensor<4xf64>}}
  %0 = "xgpu.await"(%board, %i) : (tensor<4xf64>, index) -> f32
  return
}

// -----

func.func @room(%board: tensor<1xi64>, %i: index) {
  // expected-error @+1 {{expected room for a message of 2 words, got tensor<1xi64>}}
  %0 = "xgpu.await"(%board, %i) : (tensor<1xi64>, index) -> f64
  return
}
