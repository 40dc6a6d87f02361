// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_tensor() {
  // expected-error @+1 {{result 'tile': expected a tensor of static shape, got f32}}
  %0 = "xgpu.allocate_shared"() : () -> f32
  return
}

// -----

func.func @dynamic() {
  // expected-error @+1 {{result 'tile': expected a tensor of static shape, got tensor<?xf32>}}
  %0 = "xgpu.allocate_shared"() : () -> tensor<?xf32>
  return
}

// -----

func.func @empty() {
  // expected-error @+1 {{'xgpu.allocate_shared' expected a tile with elements, got tensor<4x0xf32>}}
  %0 = "xgpu.allocate_shared"() : () -> tensor<4x0xf32>
  return
}
