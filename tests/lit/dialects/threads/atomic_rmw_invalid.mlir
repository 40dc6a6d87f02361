// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_region(%t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{'xgpu.atomic_rmw' expected 1 regions, got 0}}
  %0 = "xgpu.atomic_rmw"(%t, %i) : (tensor<8xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @argument(%t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected body arguments (f32), got (f64)}}
  %0 = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: f64):
    "xgpu.yield"(%old) : (f64) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @yields_two(%t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected xgpu.yield of (f32), got (f32, f32)}}
  %0 = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: f32):
    "xgpu.yield"(%old, %old) : (f32, f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return
}

// -----

func.func @rank(%t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected 1 indices for tensor<8xf32>, got 2}}
  %0 = "xgpu.atomic_rmw"(%t, %i, %i) ({
  ^bb0(%old: f32):
    "xgpu.yield"(%old) : (f32) -> ()
  }) : (tensor<8xf32>, index, index) -> tensor<8xf32>
  return
}

// -----

func.func @result(%t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected a result of the tensor's type tensor<8xf32>, got tensor<9xf32>}}
  %0 = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: f32):
    "xgpu.yield"(%old) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<9xf32>
  return
}

// -----

func.func @side_effect(%t: tensor<8xf32>, %i: index) {
  // expected-error @+1 {{expected a body without side effects, got 'xgpu.sync_threads'}}
  %0 = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: f32):
    "xgpu.sync_threads"() : () -> ()
    "xgpu.yield"(%old) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return
}
