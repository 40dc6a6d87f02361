// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @arguments(%x: tensor<8xf32>) {
  // expected-error @+1 {{'xgpu.chain' expected region arguments (tensor<8xf32>), got (tensor<4xf32>)}}
  %0 = "xgpu.chain"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @result(%x: tensor<8xf32>) {
  // expected-error @+1 {{expected stablehlo.return of tensor<4xf32>, got (tensor<8xf32>)}}
  %0 = "xgpu.chain"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    stablehlo.return %a : tensor<8xf32>
  }) : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @end(%x: tensor<8xf32>) {
  // expected-error @+1 {{expected the region to end with stablehlo.return}}
  %0 = "xgpu.chain"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    "xgpu.yield"(%a) : (tensor<8xf32>) -> ()
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @results(%x: tensor<8xf32>) {
  // expected-error @+1 {{expected stablehlo.return of tensor<8xf32>, got (tensor<8xf32>, tensor<8xf32>)}}
  %0 = "xgpu.chain"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    stablehlo.return %a, %a : tensor<8xf32>, tensor<8xf32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return
}
