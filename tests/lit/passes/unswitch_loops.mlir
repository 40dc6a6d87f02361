// RUN: xgpu-opt %s -p unswitch-loops --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'unswitch-loops{max-depth=1}' --split-input-file | FileCheck %s --check-prefix=DEPTH
// RUN: xgpu-opt %s -p 'unswitch-loops{max-ops=0}' --split-input-file | FileCheck %s --check-prefix=NONE

// The test of the domain is hoisted, and each version of the loop has the branches that it takes, for all conditionals
// with the same condition, however deep.

// CHECK-LABEL: func.func @same_condition
// CHECK-SAME:    (%[[X:.*]]: f32, %[[I:.*]]: index, %[[C:.*]]: i1)
// CHECK:         %[[IN:.*]] = "xgpu.in_domain"(%[[I]])
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[IN]] -> (f32) {
// CHECK-NEXT:      %[[FOR:.*]] = scf.for %{{.*}} iter_args(%[[A:.*]] = %[[X]])
// CHECK-NEXT:        %[[EXP:.*]] = math.exp %[[A]]
// CHECK-NEXT:        %[[COS:.*]] = math.cos %[[EXP]]
// CHECK-NEXT:        scf.yield %[[COS]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[FOR]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[FOR:.*]] = scf.for %{{.*}} iter_args(%[[A:.*]] = %[[X]])
// CHECK-NEXT:        %[[NEG:.*]] = arith.negf %[[A]]
// CHECK-NEXT:        scf.yield %[[NEG]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[FOR]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
// NONE-LABEL:  func.func @same_condition
// NONE:          scf.for
// NONE:            scf.if
// NONE:            scf.if
func.func @same_condition(%x: f32, %i: index, %c: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %in = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 9], d0 in [2, 7]>} : (index) -> i1
    %y = scf.if %in -> (f32) {
      %e = math.exp %a : f32
      scf.yield %e : f32
    } else {
      %n = arith.negf %a : f32
      scf.yield %n : f32
    }
    %z = scf.if %in -> (f32) {
      %w = scf.if %in -> (f32) {
        %e = math.cos %y : f32
        scf.yield %e : f32
      } else {
        %e = math.sin %y : f32
        scf.yield %e : f32
      }
      scf.yield %w : f32
    } else {
      scf.yield %y : f32
    }
    scf.yield %z : f32
  }
  return %r : f32
}

// -----

// Several conditions: a version for each outcome, as deep as allowed.

// CHECK-LABEL:  func.func @two_conditions
// CHECK-COUNT-4:  scf.for
// CHECK-NOT:      scf.for
// CHECK:          return
// DEPTH-LABEL:  func.func @two_conditions
// DEPTH:          scf.if
// DEPTH-NEXT:       scf.for
// DEPTH-NEXT:         math.exp
// DEPTH-NEXT:         scf.if
// DEPTH:            scf.for
// DEPTH-NEXT:         scf.if
// DEPTH-NOT:      scf.for
// DEPTH:          return
func.func @two_conditions(%x: f32, %c: i1, %d: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %y = scf.if %c -> (f32) {
      %e = math.exp %a : f32
      scf.yield %e : f32
    } else {
      scf.yield %a : f32
    }
    %z = scf.if %d -> (f32) {
      %e = math.cos %y : f32
      scf.yield %e : f32
    } else {
      scf.yield %y : f32
    }
    scf.yield %z : f32
  }
  return %r : f32
}

// -----

// A condition leaves all the loops that it does not depend on; a conditional without results needs no second branch.

// CHECK-LABEL: func.func @nested
// CHECK:         scf.if
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          gpu.barrier
// CHECK:         } else {
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        scf.for
// CHECK-NEXT:        }
func.func @nested(%c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %k = %c0 to %c4 step %c1 {
    scf.for %l = %c0 to %c4 step %c1 {
      scf.if %c {
        gpu.barrier
      }
    }
  }
  return
}

// -----

// Left alone: a condition computed in the loop, a conditional that is not directly in it, and a loop that few execute.

// CHECK-LABEL: func.func @left_alone
// CHECK-NOT:     scf.if
// CHECK:         scf.for
// CHECK-NEXT:      arith.cmpf
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        scf.if
// CHECK:         scf.for
// CHECK-NEXT:      scf.if
// CHECK:         } {xgpu.unroll = "none"}
// CHECK-NOT:     scf.for
func.func @left_alone(%x: f32, %c: i1) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %d = arith.cmpf olt, %a, %x : f32
    %y = scf.if %d -> (f32) {
      %z = scf.if %c -> (f32) {
        %e = math.exp %a : f32
        scf.yield %e : f32
      } else {
        scf.yield %a : f32
      }
      scf.yield %z : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %y : f32
  }
  %s = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %y = scf.if %c -> (f32) {
      %e = math.exp %a : f32
      scf.yield %e : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %y : f32
  } {xgpu.unroll = "none"}
  return %r, %s : f32, f32
}

// -----

// A loop with a barrier stays one: threads might take different versions. A loop inside of it is switched.

// CHECK-LABEL: func.func @barrier
// CHECK:         scf.for
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        scf.for
// CHECK:           "xgpu.sync_threads"
// CHECK-NOT:     "xgpu.sync_threads"
func.func @barrier(%x: f32, %c: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%b = %a) -> (f32) {
      %y = scf.if %c -> (f32) {
        %e = math.exp %b : f32
        scf.yield %e : f32
      } else {
        scf.yield %b : f32
      }
      scf.yield %y : f32
    }
    "xgpu.sync_threads"() : () -> ()
    scf.yield %s : f32
  }
  return %r : f32
}

// -----

// What became invariant after the loop's code was moved, as of an index that is a constant now, is moved first; a
// division is not, which a loop of no steps would not make.

// CHECK-LABEL: func.func @late_constant
// CHECK:         %[[AT:.*]] = "xgpu.apply_indexing"(%{{.*}}, %{{.*}}) {{.*}} : (index, index) -> index
// CHECK-NEXT:    %[[X:.*]] = tensor.extract %arg0[%[[AT]]]
// CHECK-NEXT:    %[[C:.*]] = arith.cmpi slt, %[[X]]
// CHECK-NEXT:    scf.if %[[C]]
// CHECK:           scf.for
// CHECK-NEXT:        arith.divsi
// CHECK:           scf.for
// CHECK-NEXT:        arith.divsi
// CHECK-NEXT:        arith.addi
func.func @late_constant(%t: tensor<8xi32>, %n: index, %a: i32, %b: i32) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %a) -> (i32) {
    %at = "xgpu.apply_indexing"(%n, %c1) {map = #xgpu.map<(d0, d1) -> (d0 * 2 + d1), d0 in [0, 3], d1 in [0, 1]>}
      : (index, index) -> index
    %x = tensor.extract %t[%at] : tensor<8xi32>
    %inside = arith.cmpi slt, %x, %zero : i32
    %q = arith.divsi %a, %b : i32
    %y = scf.if %inside -> (i32) {
      scf.yield %s : i32
    } else {
      %z = arith.addi %q, %s : i32
      scf.yield %z : i32
    }
    scf.yield %y : i32
  }
  return %r : i32
}

// -----

// Each warp has threads of both outcomes, and would compute all sines of both versions: that costs more than a load.

// CHECK-LABEL: func.func @divided_warps
// CHECK-NOT:     scf.if
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             tensor.extract
// CHECK-NOT:     scf.for
func.func @divided_warps(%t: tensor<256xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = gpu.thread_id x upper_bound 128
  %inside = "xgpu.in_domain"(%n) {map = #xgpu.map<(d0) -> (), d0 in [0, 127], d0 mod 32 in [1, 31]>} : (index) -> i1
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> (f32) {
    %at = "xgpu.apply_indexing"(%n, %i) {map = #xgpu.map<(d0, d1) -> (d0 * 2 + d1), d0 in [0, 127], d1 in [0, 1]>}
      : (index, index) -> index
    %y = scf.if %inside -> (f32) {
      %z = tensor.extract %t[%at] : tensor<256xf32>
      scf.yield %z : f32
    } else {
      scf.yield %zero : f32
    }
    %b = arith.addf %a, %y : f32
    %s = math.sin %b : f32
    scf.yield %s : f32
  }
  return %r : f32
}

// -----

// Three quarters of the warps are not divided: a version for each.

// CHECK-LABEL: func.func @whole_warps
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK-NOT:         scf.if
// CHECK:         } else {
// CHECK:           scf.for
func.func @whole_warps(%t: tensor<256xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = gpu.thread_id x upper_bound 128
  %inside = "xgpu.in_domain"(%n) {map = #xgpu.map<(d0) -> (), d0 in [1, 127]>} : (index) -> i1
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> (f32) {
    %at = "xgpu.apply_indexing"(%n, %i) {map = #xgpu.map<(d0, d1) -> (d0 * 2 + d1), d0 in [0, 127], d1 in [0, 1]>}
      : (index, index) -> index
    %y = scf.if %inside -> (f32) {
      %z = tensor.extract %t[%at] : tensor<256xf32>
      scf.yield %z : f32
    } else {
      scf.yield %zero : f32
    }
    %b = arith.addf %a, %y : f32
    %s = math.sin %b : f32
    scf.yield %s : f32
  }
  return %r : f32
}
