// What lower-tensors refuses: programs that one place in memory for each tensor cannot serve, and unsupported types.

// RUN: xgpu-opt %s -p lower-tensors --split-input-file --verify-diagnostics

func.func @old_value(%a: tensor<8xf32>, %b: tensor<8xf32>, %i: index) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  %x = tensor.extract %a[%i] : tensor<8xf32>
  %r = tensor.insert %x into %b[%i] : tensor<8xf32>
  // expected-error @below {{'tensor.extract': uses an old value of parameter 1 of @old_value, whose memory was updated before}}
  %y = tensor.extract %b[%i] : tensor<8xf32>
  %s = tensor.insert %y into %r[%i] : tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

func.func @old_value_in_a_later_iteration(%b: tensor<8xf32>, %n: index, %x: f32) -> (tensor<8xf32>, f32)
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %r:2 = scf.for %i = %n to %n step %n iter_args(%t = %b, %y = %x) -> (tensor<8xf32>, f32) {
    // expected-error @below {{'tensor.extract': uses an old value of parameter 0}}
    %old = tensor.extract %b[%i] : tensor<8xf32>
    %u = tensor.insert %old into %t[%i] : tensor<8xf32>
    scf.yield %u, %old : tensor<8xf32>, f32
  }
  return %r#0, %r#1 : tensor<8xf32>, f32
}

// -----

func.func @dropped(%b: tensor<8xf32>, %i: index, %x: f32, %c: i1) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  scf.if %c {
    %u = tensor.insert %x into %b[%i] : tensor<8xf32>
  }
  // expected-error @below {{'func.return': uses an old value of parameter 0}}
  return %b : tensor<8xf32>
}

// -----

func.func @dropped_in_a_loop(%b: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for': an update of parameter 0 of @dropped_in_a_loop in its body is not among its results}}
  scf.for %k = %c0 to %i step %c1 {
    %u = tensor.insert %x into %b[%k] : tensor<8xf32>
  }
  return %b : tensor<8xf32>
}

// -----

func.func @returns_old_value(%b: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %u = tensor.insert %x into %b[%i] : tensor<8xf32>
  // expected-error @below {{'func.return': uses an old value of parameter 0}}
  return %b : tensor<8xf32>
}

// -----

func.func @writes_input(%a: tensor<8xf32>, %i: index, %x: f32) attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  // expected-error @below {{'tensor.insert': updates parameter 0 of @writes_input, which is read-only}}
  %u = tensor.insert %x into %a[%i] : tensor<8xf32>
  return
}

// -----

func.func @exchanged(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: i1) -> (tensor<8xf32>, tensor<8xf32>)
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  // expected-error @below {{'scf.if': expected parameter 1 of @exchanged to be passed on, got parameter 0 of @exchanged}}
  %r:2 = scf.if %c -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %a, %b : tensor<8xf32>, tensor<8xf32>
  } else {
    scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// expected-error @below {{expected @wrong_result to return parameter 1 of @wrong_result, got nothing}}
func.func @wrong_result(%a: tensor<8xf32>, %b: tensor<8xf32>) attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  return
}

// -----

// expected-error @below {{expected attribute 'xgpu.inputs' on the kernel @no_inputs}}
func.func @no_inputs(%a: tensor<8xf32>) attributes {xgpu.kernel} {
  return
}

// -----

// expected-error @below {{expected tensors of one static dimension, got tensor<2x4xf32>; run flatten-tensors first}}
func.func @two_dimensions(%a: tensor<2x4xf32>) {
  return
}

// -----

// expected-error @below {{'func.func': elements of type i7 are not supported}}
func.func @seven_bits(%a: tensor<8xi7>) {
  return
}

// -----

func.func @other_source(%c: i1, %a: tensor<8xf32>, %b: tensor<8xf32>, %i: index) -> f32 {
  %t = arith.select %c, %a, %b : tensor<8xf32>
  // expected-error @below {{'tensor.extract': expected a parameter, a constant or an update of one, got}}
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x : f32
}

// -----

func.func @other_operation(%a: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{'tensor.extract_slice': expected only scalar and vector accesses to tensors}}
  %t = tensor.extract_slice %a[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %t : tensor<4xf32>
}

// -----

func.func @out_of_bounds(%a: tensor<8xf32>, %i: index, %x: f32) -> vector<4xf32> {
  // expected-error @below {{'vector.transfer_read': expected a transfer of one dimension, in bounds}}
  %v = vector.transfer_read %a[%i], %x : tensor<8xf32>, vector<4xf32>
  return %v : vector<4xf32>
}

// -----

func.func @output_to_function(%b: tensor<8xf32>, %i: index) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  // expected-error @below {{'xgpu.pure_call': passes parameter 0 of @output_to_function, which this kernel updates}}
  %x = "xgpu.pure_call"(%b, %i) {callee = @function} : (tensor<8xf32>, index) -> f32
  %r = tensor.insert %x into %b[%i] : tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @function(%a: tensor<8xf32>, %i: index) -> f32 {
  %x = tensor.extract %a[%i] : tensor<8xf32>
  return %x : f32
}
