// RUN: xgpu-opt %s -p unroll-loops --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'unroll-loops{max-ops=4}' --split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: xgpu-opt %s -p 'unroll-loops{max-trip=2}' --split-input-file | FileCheck %s --check-prefix=TRIP

// Iterations one after the other, vectors accessed at constant positions. A loop over a vector that is too large is marked;
// one that is too long is not.

// CHECK-LABEL: func.func @vector
// CHECK-SAME:    (%[[V:.*]]: vector<3xf32>, %[[W:.*]]: vector<2x3xf32>, %[[I:.*]]: index)
// CHECK-NOT:     scf.for
// CHECK:         %[[X0:.*]] = vector.extract %[[V]][0]
// CHECK-NEXT:    %[[W0:.*]] = vector.insert %[[X0]], %[[W]] [%[[I]], 0]
// CHECK:         %[[X1:.*]] = vector.extract %[[V]][1]
// CHECK-NEXT:    %[[W1:.*]] = vector.insert %[[X1]], %[[W0]] [%[[I]], 1]
// CHECK:         %[[X2:.*]] = vector.extract %[[V]][2]
// CHECK-NEXT:    %[[W2:.*]] = vector.insert %[[X2]], %[[W1]] [%[[I]], 2]
// CHECK-NEXT:    return %[[W2]]
// SMALL-LABEL: func.func @vector
// SMALL:         } {xgpu.unroll = "full"}
// TRIP-LABEL:  func.func @vector
// TRIP:          scf.for
// TRIP-NOT:      xgpu.unroll
// TRIP:          return
func.func @vector(%v: vector<3xf32>, %w: vector<2x3xf32>, %i: index) -> vector<2x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %w) -> (vector<2x3xf32>) {
    %x = vector.extract %v[%k] : f32 from vector<3xf32>
    %b = vector.insert %x, %a[%i, %k] : f32 into vector<2x3xf32>
    scf.yield %b : vector<2x3xf32>
  }
  return %r : vector<2x3xf32>
}

// -----

// Inner loops first; values are carried through, also past each other; the induction variable becomes a constant.

// CHECK-LABEL: func.func @nested
// CHECK-SAME:    (%[[X:.*]]: index, %[[Y:.*]]: index)
// CHECK-NOT:     scf.for
// CHECK:         %[[C2:.*]] = arith.constant 2 : index
// CHECK:         %[[A:.*]] = arith.addi %[[X]], %[[C2]]
// CHECK:         %[[B:.*]] = arith.addi %[[A]], %{{.*}}
// CHECK:         %[[C5:.*]] = arith.constant 5 : index
// CHECK:         %[[C:.*]] = arith.addi %[[Y]], %[[C5]]
// CHECK:         %[[D:.*]] = arith.addi %[[C]], %{{.*}}
// CHECK:         return %[[B]], %[[D]]
func.func @nested(%x: index, %y: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %r:2 = scf.for %k = %c2 to %c6 step %c3 iter_args(%a = %x, %b = %y) -> (index, index) {
    %s = scf.for %l = %c0 to %c2 step %c1 iter_args(%d = %a) -> (index) {
      %e = arith.addi %d, %k : index
      scf.yield %e : index
    }
    scf.yield %b, %s : index, index
  }
  return %r#0, %r#1 : index, index
}

// -----

// Stays: a loop marked so, a long one and the one around it, and one whose bounds are not known.

// CHECK-LABEL: func.func @stays
// CHECK:         scf.for
// CHECK:         } {xgpu.unroll = "none"}
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:         scf.for
// CHECK-NOT:     xgpu.unroll
// CHECK:         return
func.func @stays(%x: f32, %n: index) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c1000 = arith.constant 1000 : index
  %r = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %x) -> (f32) {
    %b = arith.negf %a : f32
    scf.yield %b : f32
  } {xgpu.unroll = "none"}
  %s = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %x) -> (f32) {
    %t = scf.for %l = %c0 to %c1000 step %c1 iter_args(%d = %a) -> (f32) {
      %b = arith.negf %d : f32
      scf.yield %b : f32
    }
    scf.yield %t : f32
  }
  %u = scf.for %k = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %b = arith.negf %a : f32
    scf.yield %b : f32
  }
  return %r, %s, %u : f32, f32, f32
}

// -----

// No iteration or a single one: the loop goes away whatever else.

// CHECK-LABEL: func.func @trivial
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK-NOT:     scf.for
// CHECK:         %[[Y:.*]] = arith.negf %[[X]]
// CHECK-NEXT:    return %[[X]], %[[Y]]
func.func @trivial(%x: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c1 to %c0 step %c1 iter_args(%a = %x) -> (f32) {
    %b = arith.negf %a : f32
    scf.yield %b : f32
  }
  %s = scf.for %k = %c0 to %c1 step %c1 iter_args(%a = %x) -> (f32) {
    %b = arith.negf %a : f32
    scf.yield %b : f32
  } {xgpu.unroll = "none"}
  return %r, %s : f32, f32
}

// -----

// A loop marked so goes away, however few iterations and operations are allowed.

// TRIP-LABEL:    func.func @early
// TRIP-NOT:      scf.for
// TRIP-COUNT-9:  arith.negf
// TRIP-NEXT:     return
// SMALL-LABEL:   func.func @early
// SMALL-COUNT-9: arith.negf
// SMALL-NEXT:    return
func.func @early(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %x) -> (f32) {
    %s = scf.for %l = %c0 to %c3 step %c1 iter_args(%b = %a) -> (f32) {
      %c = arith.negf %b : f32
      scf.yield %c : f32
    } {xgpu.unroll = "early"}
    scf.yield %s : f32
  } {xgpu.unroll = "early"}
  return %r : f32
}

// -----

// Sines are many operations each.

// TRIP-LABEL:    func.func @long_functions
// SMALL-LABEL:   func.func @long_functions
// CHECK-LABEL:   func.func @long_functions
// CHECK:         scf.for
// CHECK:           math.sin
// CHECK-NOT:       math.sin
func.func @long_functions(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %r = scf.for %k = %c0 to %c32 step %c1 iter_args(%a = %x) -> (f32) {
    %s = math.sin %a : f32
    scf.yield %s : f32
  }
  return %r : f32
}

// -----

// Versions of a loop that read 40 and 36 elements, where a thread of 1,024 has registers for 32 addresses.

// CHECK-LABEL: func.func @uneven_versions
// CHECK:         scf.if
// CHECK-NEXT:      scf.for
// CHECK:         else
// CHECK-NEXT:      scf.for
func.func @uneven_versions(%x: tensor<99xf32>, %zero: vector<4xf32>, %f: f32, %is_longer: i1) -> vector<4xf32>
    attributes {xgpu.block = array<i64: 1024, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c10 = arith.constant 10 : index
  %r = scf.if %is_longer -> (vector<4xf32>) {
    %s = scf.for %k = %c0 to %c10 step %c1 iter_args(%a = %zero) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  } else {
    %s = scf.for %k = %c0 to %c9 step %c1 iter_args(%a = %zero) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  }
  return %r : vector<4xf32>
}

// CHECK-LABEL: func.func @uneven_versions_of_few_threads
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @uneven_versions_of_few_threads(%x: tensor<99xf32>, %zero: vector<4xf32>, %f: f32, %is_longer: i1) -> vector<4xf32>
    attributes {xgpu.block = array<i64: 512, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c10 = arith.constant 10 : index
  %r = scf.if %is_longer -> (vector<4xf32>) {
    %s = scf.for %k = %c0 to %c10 step %c1 iter_args(%a = %zero) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  } else {
    %s = scf.for %k = %c0 to %c9 step %c1 iter_args(%a = %zero) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  }
  return %r : vector<4xf32>
}

// CHECK-LABEL: func.func @even_versions
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @even_versions(%x: tensor<99xf32>, %zero: vector<4xf32>, %f: f32, %is_longer: i1) -> vector<4xf32>
    attributes {xgpu.block = array<i64: 1024, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c10 = arith.constant 10 : index
  %r = scf.if %is_longer -> (vector<4xf32>) {
    %s = scf.for %k = %c0 to %c9 step %c1 iter_args(%a = %zero) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  } else {
    %s = scf.for %k = %c0 to %c9 step %c1 iter_args(%a = %zero) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  }
  return %r : vector<4xf32>
}

// -----

// Loops before them are unrolled, and what the versions start from is then another value: they stay all the same.

// CHECK-LABEL: func.func @uneven_versions_after_a_loop
// CHECK-NOT:     scf.for
// CHECK:         scf.if
// CHECK-NEXT:      scf.for
// CHECK:         else
// CHECK-NEXT:      scf.for
func.func @uneven_versions_after_a_loop(%x: tensor<99xf32>, %zero: vector<4xf32>, %f: f32, %is_longer: i1) -> vector<4xf32>
    attributes {xgpu.block = array<i64: 1024, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %c10 = arith.constant 10 : index
  %start = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %zero) -> (vector<4xf32>) {
    %b = arith.addf %a, %a : vector<4xf32>
    scf.yield %b : vector<4xf32>
  }
  %r = scf.if %is_longer -> (vector<4xf32>) {
    %s = scf.for %k = %c0 to %c10 step %c1 iter_args(%a = %start) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  } else {
    %s = scf.for %k = %c0 to %c9 step %c1 iter_args(%a = %start) -> (vector<4xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<4xf32>
      %b = arith.addf %a, %v : vector<4xf32>
      scf.yield %b : vector<4xf32>
    }
    scf.yield %s : vector<4xf32>
  }
  return %r : vector<4xf32>
}

// A loop of one iteration goes away, and then there are no versions of a loop.

// CHECK-LABEL: func.func @one_iteration_or_two
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @one_iteration_or_two(%x: tensor<99xf32>, %zero: vector<64xf32>, %f: f32, %is_longer: i1) -> vector<64xf32>
    attributes {xgpu.block = array<i64: 1024, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.if %is_longer -> (vector<64xf32>) {
    %s = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %zero) -> (vector<64xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<64xf32>
      %b = arith.addf %a, %v : vector<64xf32>
      scf.yield %b : vector<64xf32>
    }
    scf.yield %s : vector<64xf32>
  } else {
    %s = scf.for %k = %c0 to %c1 step %c1 iter_args(%a = %zero) -> (vector<64xf32>) {
      %v = vector.transfer_read %x[%k], %f {in_bounds = [true]} : tensor<99xf32>, vector<64xf32>
      %b = arith.addf %a, %v : vector<64xf32>
      scf.yield %b : vector<64xf32>
    }
    scf.yield %s : vector<64xf32>
  }
  return %r : vector<64xf32>
}
