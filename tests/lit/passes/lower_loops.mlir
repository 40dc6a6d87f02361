// RUN: xgpu-opt %s -p lower-loops --split-input-file | FileCheck %s

// A loop for each range variable, outermost first; a range need not begin with 0; carried values go through.

// CHECK-LABEL: func.func @nest
// CHECK-SAME:    (%[[X:.*]]: index)
// CHECK:         %[[TID:.*]] = gpu.thread_id
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[C6:.*]] = arith.constant 6 : index
// CHECK:         %[[OUTER:.*]] = scf.for %[[S0:.*]] = %[[C2]] to %[[C6]] step %[[C1]] iter_args(%[[A:.*]] = %[[X]]) -> (index) {
// CHECK-NEXT:      %[[INNER:.*]] = scf.for %[[S1:.*]] = %[[C0]] to %[[C4]] step %[[C1]] iter_args(%[[B:.*]] = %[[A]]) -> (index) {
// CHECK-NEXT:        %[[I:.*]]:2 = "xgpu.apply_indexing"(%[[TID]], %[[S0]], %[[S1]])
// CHECK-SAME:          map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 4 + s1), d0 in [0, 127], s0 in [2, 5], s1 in [0, 3]>
// CHECK-NEXT:        %[[P:.*]] = arith.addi %[[B]], %[[S0]]
// CHECK-NEXT:        %[[Q:.*]] = arith.addi %[[P]], %[[S1]]
// CHECK-NEXT:        %[[R:.*]] = arith.muli %[[Q]], %[[I]]#0
// CHECK-NEXT:        %[[N:.*]] = arith.muli %[[R]], %[[I]]#1
// CHECK-NEXT:        scf.yield %[[N]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[INNER]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[OUTER]]
func.func @nest(%x: index) -> index {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %s1: index, %i: index, %j: index, %a: index):
    %p = arith.addi %a, %s0 : index
    %q = arith.addi %p, %s1 : index
    %r = arith.muli %q, %i : index
    %n = arith.muli %r, %j : index
    "xgpu.yield"(%n) : (index) -> ()
  }) {map = #xgpu.map<(d0)[s0, s1] -> (s0, d0 * 4 + s1), d0 in [0, 127], s0 in [2, 5], s1 in [0, 3]>}
    : (index, index) -> index
  return %r : index
}

// -----

// Each constraint is tested as far outside as its variables allow; where it fails, what was carried stays.

// CHECK-LABEL: func.func @constraints
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK:         %[[TID:.*]] = gpu.thread_id
// CHECK:         %[[BID:.*]] = gpu.block_id
// CHECK:         %[[IN0:.*]] = "xgpu.in_domain"(%[[TID]], %[[BID]])
// CHECK-SAME:      map = #xgpu.map<(d0, d1) -> (), d0 in [0, 60], d1 in [0, 63], d0 + d1 in [0, 90]>
// CHECK:         %[[R:.*]] = scf.if %[[IN0]] -> (f32) {
// CHECK-NEXT:      %[[R0:.*]] = scf.for %[[S0:.*]] = {{.*}} iter_args(%[[A:.*]] = %[[X]])
// CHECK-NEXT:        %[[IN1:.*]] = "xgpu.in_domain"(%[[TID]], %[[S0]])
// CHECK-SAME:          d0 + s0 * 13 in [0, 60]
// CHECK-NEXT:        %[[R1:.*]] = scf.if %[[IN1]] -> (f32) {
// CHECK-NEXT:          %[[R2:.*]] = scf.for %[[S1:.*]] = {{.*}} iter_args(%[[B:.*]] = %[[A]])
// CHECK-NEXT:            %[[IN2:.*]] = "xgpu.in_domain"(%[[S0]], %[[S1]])
// CHECK-SAME:              map = #xgpu.map<()[s0, s1] -> (), s0 in [0, 4], s1 in [0, 3], s0 + s1 in [0, 6]>
// CHECK-NEXT:            %[[R3:.*]] = scf.if %[[IN2]] -> (f32) {
// CHECK-NEXT:              arith.negf %[[B]]
// CHECK-NEXT:              scf.yield
// CHECK-NEXT:            } else {
// CHECK-NEXT:              scf.yield %[[B]]
// CHECK-NEXT:            }
// CHECK-NEXT:            scf.yield %[[R3]]
// CHECK-NEXT:          }
// CHECK-NEXT:          scf.yield %[[R2]]
// CHECK-NEXT:        } else {
// CHECK-NEXT:          scf.yield %[[A]]
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.yield %[[R1]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[R0]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
func.func @constraints(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 61
  %bid = gpu.block_id x upper_bound 64
  %r = "xgpu.loop"(%tid, %bid, %x) ({
  ^bb0(%s0: index, %s1: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0, d1)[s0, s1] -> (), d0 in [0, 60], d1 in [0, 63], s0 in [0, 4], s1 in [0, 3],
      d0 + d1 in [0, 90], d0 + s0 * 13 in [0, 60], s0 + s1 in [0, 6]>} : (index, index, f32) -> f32
  return %r : f32
}

// -----

// A dimension is tested if its operand may be outside the map's range, also when that range follows from a constraint.

// CHECK-LABEL: func.func @dimension_ranges
// CHECK:         %[[IN:.*]] = "xgpu.in_domain"(%{{.*}}) {map = #xgpu.map<(d0) -> (), d0 in [0, 127], d0 in [0, 99]>}
// CHECK:         scf.if %[[IN]]
// CHECK-NEXT:      scf.for
// CHECK-NOT:       xgpu.in_domain
// CHECK-LABEL: func.func @known_dimension
// CHECK-NOT:     xgpu.in_domain
// CHECK:         return
func.func @dimension_ranges(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 399]>} : (index, f32) -> f32
  return %r : f32
}
func.func @known_dimension(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 100
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 399]>} : (index, f32) -> f32
  return %r : f32
}

// -----

// Range variables with one value become constants; an empty domain leaves what was carried in.

// CHECK-LABEL: func.func @one_point
// CHECK-SAME:    (%[[X:.*]]: index)
// CHECK:         %[[C3:.*]] = arith.constant 3 : index
// CHECK-NOT:     scf
// CHECK:         %[[R:.*]] = arith.addi %[[X]], %[[C3]]
// CHECK-NEXT:    return %[[R]]
// CHECK-LABEL: func.func @no_point
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK-NOT:     arith.negf
// CHECK:         return %[[X]]
func.func @one_point(%x: index) -> index {
  %r = "xgpu.loop"(%x) ({
  ^bb0(%s0: index, %a: index):
    %n = arith.addi %a, %s0 : index
    "xgpu.yield"(%n) : (index) -> ()
  }) {map = #xgpu.map<()[s0] -> (), s0 in [3, 3]>} : (index) -> index
  return %r : index
}
func.func @no_point(%x: f32) -> f32 {
  %r = "xgpu.loop"(%x) ({
  ^bb0(%s0: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<()[s0] -> (), s0 in [0, 3], s0 in [7, 9]>} : (f32) -> f32
  return %r : f32
}

// -----

// xgpu.unroll goes to the innermost loop; loops inside loops are lowered as well.

// CHECK-LABEL: func.func @unroll_attribute
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:             }
// CHECK-NEXT:        scf.yield
// CHECK-NEXT:      } {xgpu.unroll = "none"}
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @unroll_attribute(%x: f32) -> f32 {
  %r = "xgpu.loop"(%x) ({
  ^bb0(%s0: index, %s1: index, %a: f32):
    %m = "xgpu.loop"(%s1, %a) ({
    ^bb0(%t0: index, %b: f32):
      %n = arith.negf %b : f32
      "xgpu.yield"(%n) : (f32) -> ()
    }) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 3], s0 in [0, 7]>} : (index, f32) -> f32
    "xgpu.yield"(%m) : (f32) -> ()
  }) {map = #xgpu.map<()[s0, s1] -> (), s0 in [0, 7], s1 in [0, 3]>, xgpu.unroll = "none"} : (f32) -> f32
  return %r : f32
}

// -----

// Of loops that go away in any case, all are marked.

// CHECK-LABEL: func.func @unroll_early
// CHECK:         scf.for
// CHECK-NEXT:      scf.for
// CHECK:           } {xgpu.unroll = "early"}
// CHECK:         } {xgpu.unroll = "early"}
func.func @unroll_early(%x: f32) -> f32 {
  %r = "xgpu.loop"(%x) ({
  ^bb0(%s0: index, %s1: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<()[s0, s1] -> (), s0 in [0, 7], s1 in [0, 3]>, xgpu.unroll = "early"} : (f32) -> f32
  return %r : f32
}

// -----

// A loop may carry nothing, or several values.

// CHECK-LABEL: func.func @carried
// CHECK:         %[[R:.*]]:2 = scf.for {{.*}} -> (f32, i32) {
// CHECK:           scf.yield %{{.*}}, %{{.*}} : f32, i32
// CHECK:         }
// CHECK:         scf.for
// CHECK-NOT:     iter_args
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @carried(%x: f32, %y: i32) -> (f32, i32) {
  %r:2 = "xgpu.loop"(%x, %y) ({
  ^bb0(%s0: index, %a: f32, %b: i32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n, %b) : (f32, i32) -> ()
  }) {map = #xgpu.map<()[s0] -> (), s0 in [0, 3]>} : (f32, i32) -> (f32, i32)
  "xgpu.loop"() ({
  ^bb0(%s0: index):
    "xgpu.yield"() : () -> ()
  }) {map = #xgpu.map<()[s0] -> (), s0 in [0, 3]>} : () -> ()
  return %r#0, %r#1 : f32, i32
}
