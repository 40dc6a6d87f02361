// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @types(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{expected results of the operands' types (tensor<8xf32>), got (tensor<4xf32>)}}
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @dimension(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'dimension': expected a dimension of tensor<8xf32>, got 1}}
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {dimension = 1 : i64, reverse = false} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @reverse(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'reverse': expected true or false, got 1 : i64}}
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {dimension = 0 : i64, reverse = 1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @arguments(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{expected region arguments (tensor<f32>, tensor<f32>), got (tensor<f32>)}}
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @returned(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{expected stablehlo.return of (tensor<f32>), got (tensor<f32>, tensor<f32>)}}
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a, %b : tensor<f32>, tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @shapes(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{expected arrays of one shape, got (tensor<8xf32>, tensor<4xf32>)}}
  %0:2 = "xgpu.scan"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %a, %b : tensor<f32>, tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @nothing() {
  // expected-error @+1 {{expected at least 1 results, got 0}}
  "xgpu.scan"() ({
  ^bb0():
    stablehlo.return
  }) {dimension = 0 : i64, reverse = false} : () -> ()
  return
}
