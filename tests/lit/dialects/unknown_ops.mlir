// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @unknown_in_xgpu() {
  // expected-error @+1 {{'xgpu.no_such_op' is not an operation of the xgpu dialect}}
  "xgpu.no_such_op"() : () -> ()
  return
}

// -----

func.func @misspelt(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'xgpu.looop' is not an operation of the xgpu dialect (did you mean 'xgpu.loop'?)}}
  %0 = "xgpu.looop"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @unknown_dialect() {
  // expected-error @+1 {{unknown operation 'elsewhere.op': no dialect 'elsewhere' is known}}
  "elsewhere.op"() : () -> ()
  return
}

// -----

func.func @unknown_in_known_dialect() {
  // expected-error @+1 {{arith.no_such_op}}
  "arith.no_such_op"() : () -> ()
  return
}
