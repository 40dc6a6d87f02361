// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_tile(%x: f32) {
  // expected-error @+2 {{operand 'tiles': expected a tensor of static shape, got f32}}
  // expected-error @+1 {{result 'synchronized': expected a tensor of static shape, got f32}}
  %0 = "xgpu.sync_threads"(%x) : (f32) -> f32
  return
}

// -----

func.func @types(%a: tensor<4xf32>) {
  // expected-error @+1 {{expected results of the operands' types (tensor<4xf32>), got (tensor<5xf32>)}}
  %0 = "xgpu.sync_threads"(%a) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @no_result(%a: tensor<4xf32>) {
  // expected-error @+1 {{'xgpu.sync_threads' expected results of the operands' types (tensor<4xf32>), got ()}}
  "xgpu.sync_threads"(%a) : (tensor<4xf32>) -> ()
  return
}
