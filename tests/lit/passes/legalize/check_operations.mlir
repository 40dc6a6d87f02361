// RUN: xgpu-opt %s -p check-operations --split-input-file --verify-diagnostics

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{the shape of tensor<?xf32> is dynamic; only shapes known at compile time are supported}}
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{math.exp of type tensor<4xf32>: not a StableHLO operation}}
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The function would be lost, and XLA's compiler ends the process without it.

func.func private @order(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{custom calls that take functions of the program are not supported}}
  %0 = stablehlo.custom_call @first(%x) {called_computations = [@order]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
