// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func private @add(%x: f32, %y: f32) -> f32

func.func @distance(%x: f32) {
  // expected-error @+1 {{attribute 'distance': expected 1, 2, 4, 8 or 16, got 32}}
  %0 = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 32 : i64} : (f32) -> f32
  return
}

// -----

func.func @distance_type(%x: f32) {
  // expected-error @+1 {{attribute 'distance': expected an integer of type i64, got 4 : i32}}
  %0 = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 4 : i32} : (f32) -> f32
  return
}

// -----

func.func @no_such_function(%x: f32) {
  // expected-error @+1 {{'xgpu.shuffle_reduce' expected the name of a function of this module, got '@add'}}
  %0 = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 4 : i64} : (f32) -> f32
  return
}

// -----

func.func private @add(%x: f32, %y: f32) -> f32

func.func @combiner_type(%x: f32, %y: f32) {
  // expected-error @+1 {{expected '@add' to be of type (f32, f32, f32, f32) -> (f32, f32), got (f32, f32) -> f32}}
  %0:2 = "xgpu.shuffle_reduce"(%x, %y) {combiner = @add, distance = 4 : i64} : (f32, f32) -> (f32, f32)
  return
}

// -----

func.func private @add(%x: f32, %y: f32) -> f32

func.func @results(%x: f32) {
  // expected-error @+1 {{expected results of the operands' types (f32), got (f64)}}
  %0 = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 4 : i64} : (f32) -> f64
  return
}

// -----

func.func private @none()

func.func @nothing() {
  // expected-error @+1 {{expected at least 1 operands, got 0}}
  "xgpu.shuffle_reduce"() {combiner = @none, distance = 4 : i64} : () -> ()
  return
}

// -----

func.func private @add(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32>

func.func @tensor(%x: tensor<f32>) {
  // expected-error @+2 {{operand 'values': expected an integer, floating-point or complex type, got tensor<f32>}}
  // expected-error @+1 {{result 'combined': expected an integer, floating-point or complex type, got tensor<f32>}}
  %0 = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 4 : i64} : (tensor<f32>) -> tensor<f32>
  return
}
