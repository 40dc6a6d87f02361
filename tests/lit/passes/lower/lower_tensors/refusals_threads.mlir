// What lower-tensors refuses of tiles, barriers and outputs updated in place.

// RUN: xgpu-opt %s -p lower-tensors --split-input-file --verify-diagnostics

func.func @reads_before_the_barrier(%i: index, %x: f32) -> f32 attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  %u = tensor.insert %x into %t[%i] : tensor<8xf32>
  %s = "xgpu.sync_threads"(%u) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @below {{'tensor.extract': uses an old value of tile 0, whose memory was updated before}}
  %y = tensor.extract %u[%i] : tensor<8xf32>
  return %y : f32
}

// -----

func.func @in_a_conditional(%c: i1) attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  scf.if %c {
    // expected-error @below {{'xgpu.allocate_shared': expected to be executed once by every thread: directly in the function's body}}
    %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  }
  return
}

// -----

// expected-error @below {{'func.func': expected tiles to be allocated by the kernel alone}}
func.func @no_kernel() {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  return
}

// -----

func.func @synchronizes_an_input(%i: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  // expected-error @below {{'xgpu.sync_threads': expected tiles that the function allocates, or outputs, got parameter 0 of @synchronizes_an_input}}
  %s = "xgpu.sync_threads"(%i) : (tensor<8xf32>) -> tensor<8xf32>
  return %o : tensor<8xf32>
}

// -----

// expected-error @below {{expected @returns_a_tile to return nothing, got tile 0}}
func.func @returns_a_tile() -> tensor<8xf32> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  return %t : tensor<8xf32>
}

// -----

func.func @barrier_in_a_branch(%c: i1, %i: index) -> f32 attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  scf.if %c {
    %s = "xgpu.sync_threads"(%t) : (tensor<8xf32>) -> tensor<8xf32>
  }
  // expected-error @below {{'tensor.extract': uses an old value of tile 0}}
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x : f32
}

// -----

func.func @reads_a_tile_of_some_blocks(%o: tensor<8xf32>, %i: index, %v: f32) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  %block = gpu.block_id x
  %first = arith.constant 3 : index
  %c = arith.cmpi ult, %block, %first : index
  scf.if %c {
    %u = tensor.insert %v into %t[%i] : tensor<8xf32>
  }
  // expected-error @below {{'tensor.extract': uses an old value of tile 0, whose memory was updated before}}
  %x = tensor.extract %t[%i] : tensor<8xf32>
  %r = tensor.insert %x into %o[%i] : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @reads_aliased_input(%a: tensor<8xf32>, %o: tensor<8xf32>, %i: index) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: 0>} {
  // expected-error @below {{'tensor.extract': reads parameter 0 of @reads_aliased_input, which is updated in place as an output}}
  %x = tensor.extract %a[%i] : tensor<8xf32>
  %r = tensor.insert %x into %o[%i] : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @updates_an_input(%a: tensor<8xi32>, %i: index) attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  // expected-error @below {{'xgpu.atomic_rmw': updates parameter 0 of @updates_an_input, which is read-only}}
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: i32):
    "xgpu.yield"(%old) : (i32) -> ()
  }) : (tensor<8xi32>, index) -> tensor<8xi32>
  return
}

// -----

func.func @reads_what_it_updates(%o: tensor<8xi32>, %i: index) -> tensor<8xi32> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%o, %i) ({
  ^bb0(%old: i32):
    // expected-error @below {{'tensor.extract': uses an old value of parameter 0}}
    %x = tensor.extract %o[%i] : tensor<8xi32>
    "xgpu.yield"(%x) : (i32) -> ()
  }) : (tensor<8xi32>, index) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}
