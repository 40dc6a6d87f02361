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

// -----

func.func @too_large() {
  // expected-error @+1 {{expected a tile of at most 1048576 elements, got tensor<2147483647xi4>}}
  %0 = "xgpu.allocate_shared"() : () -> tensor<2147483647xi4>
  return
}

// -----

func.func @at_the_end_of_a_block() {
  // expected-error @+1 {{'xgpu.allocate_shared' does not end a block}}
  %0 = "xgpu.allocate_shared"() : () -> tensor<8xf32>
^bb1:
  return
}

// -----

func.func @parts_of_complex_numbers() {
  // expected-error @+1 {{complex numbers have parts of f32 or f64}}
  %0 = "xgpu.allocate_shared"() : () -> tensor<8xcomplex<i4>>
  return
}
