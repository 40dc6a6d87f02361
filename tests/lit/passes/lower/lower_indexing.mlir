// RUN: xgpu-opt %s -p lower-indexing --split-input-file | FileCheck %s

// The constant comes last, and what precedes it is shared; divisions of what is not negative are unsigned.

// CHECK-LABEL: func.func @sums
// CHECK-SAME:    (%[[I:.*]]: index {{{.*}}}) -> (index, index, index)
// CHECK-SAME:    attributes {xgpu.index_bits = 32 : i64}
// CHECK-DAG:     %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C7:.*]] = arith.constant 7 : index
// CHECK:         %[[Q:.*]] = arith.divui %[[I]], %[[C3]] : index
// CHECK-NEXT:    %[[R:.*]] = arith.remui %[[I]], %[[C3]] : index
// CHECK-NEXT:    %[[Q4:.*]] = arith.muli %[[Q]], %[[C4]] overflow<nsw, nuw> : index
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %[[Q4]], %[[R]] overflow<nsw, nuw> : index
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[SUM]], %[[C1]] overflow<nsw, nuw> : index
// CHECK-NEXT:    %[[DIFF:.*]] = arith.subi %[[C7]], %[[I]] overflow<nsw> : index
// CHECK-NEXT:    return %[[SUM]], %[[NEXT]], %[[DIFF]]
func.func @sums(%i: index {xgpu.range = array<i64: 0, 99>}) -> (index, index, index) {
  %a = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> ((d0 floordiv 3) * 4 + d0 mod 3), d0 in [0, 99]>}
    : (index) -> index
  %b, %c = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> ((d0 floordiv 3) * 4 + d0 mod 3 + 1, 7 - d0), d0 in [0, 99]>}
    : (index) -> (index, index)
  return %a, %b, %c : index, index, index
}

// -----

// Negative dividends: shifts and masks for powers of two, else moved up by a multiple of the divisor.

// CHECK-LABEL: func.func @negative
// CHECK-SAME:    (%[[I:.*]]: index {{{.*}}}, %[[J:.*]]: index)
// CHECK-SAME:    xgpu.index_bits = 64
// CHECK:         %[[UP:.*]] = arith.addi %[[I]], %c6 overflow<nsw> : index
// CHECK-NEXT:    %[[Q:.*]] = arith.divui %[[UP]], %c3 : index
// CHECK-NEXT:    %[[FLOOR:.*]] = arith.subi %[[Q]], %c2
// CHECK-NEXT:    %[[MOD:.*]] = arith.remui %[[UP]], %c3 : index
// CHECK-NEXT:    %[[SHIFT:.*]] = arith.shrsi %[[I]], %c2 : index
// CHECK-NEXT:    %[[MASK:.*]] = arith.andi %[[I]], %c3 : index
// CHECK-NEXT:    %[[NEG:.*]] = arith.cmpi slt, %[[J]], %c0 : index
// CHECK-NEXT:    %[[REFLECTED:.*]] = arith.subi %c-1, %[[J]] : index
// CHECK-NEXT:    %[[ABS:.*]] = arith.select %[[NEG]], %[[REFLECTED]], %[[J]] : index
// CHECK-NEXT:    %[[UQ:.*]] = arith.divui %[[ABS]], %c3 : index
// CHECK-NEXT:    %[[BACK:.*]] = arith.subi %c-1, %[[UQ]] : index
// CHECK-NEXT:    %[[ANY:.*]] = arith.select %[[NEG]], %[[BACK]], %[[UQ]] : index
// CHECK-NEXT:    return %[[FLOOR]], %[[MOD]], %[[SHIFT]], %[[MASK]], %[[ANY]]
func.func @negative(%i: index {xgpu.range = array<i64: -5, 300>}, %j: index) -> (index, index, index, index, index) {
  %a, %b, %c, %d = "xgpu.apply_indexing"(%i)
    {map = #xgpu.map<(d0) -> (d0 floordiv 3, d0 mod 3, d0 floordiv 4, d0 mod 4), d0 in [-5, 300]>}
    : (index) -> (index, index, index, index)
  %e = "xgpu.apply_indexing"(%j)
    {map = #xgpu.map<(d0) -> (d0 floordiv 3), d0 in [-9223372036854775808, 9223372036854775807]>} : (index) -> index
  return %a, %b, %c, %d, %e : index, index, index, index, index
}

// -----

// Comparisons: of the side that can fail, one for both, equality for a point, none if none can fail.

// CHECK-LABEL: func.func @conditions
// CHECK-SAME:    (%[[I:.*]]: index {{{.*}}}, %[[J:.*]]: index {{{.*}}})
// CHECK:         %[[SUM:.*]] = arith.addi %[[I]], %[[J]]
// CHECK-NEXT:    %[[UPPER:.*]] = arith.cmpi sle, %[[SUM]], %c67 : index
// CHECK-NEXT:    %[[LOWER:.*]] = arith.cmpi sge, %[[I]], %c3 : index
// CHECK-NEXT:    %[[FROM:.*]] = arith.subi %[[SUM]], %c2
// CHECK-NEXT:    %[[BOTH:.*]] = arith.cmpi ule, %[[FROM]], %c65 : index
// CHECK-NEXT:    %[[REM:.*]] = arith.remui %[[I]], %c3
// CHECK-NEXT:    %[[POINT:.*]] = arith.cmpi eq, %[[REM]], %c1 : index
// CHECK-NEXT:    %[[AND:.*]] = arith.andi %[[BOTH]], %[[POINT]] : i1
// CHECK-NEXT:    return %[[UPPER]], %[[LOWER]], %[[AND]], %true, %false
func.func @conditions(%i: index {xgpu.range = array<i64: 0, 300>}, %j: index {xgpu.range = array<i64: 0, 20>})
    -> (i1, i1, i1, i1, i1) {
  %a = "xgpu.in_domain"(%i, %j) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 300], d1 in [0, 20], d0 + d1 + 3 in [2, 70]>}
    : (index, index) -> i1
  %b = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 300], d0 in [3, 300]>} : (index) -> i1
  %c = "xgpu.in_domain"(%i, %j)
    {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 300], d1 in [0, 20], d0 + d1 + 3 in [5, 70], d0 mod 3 in [1, 1]>}
    : (index, index) -> i1
  %d = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 300], d0 * 2 in [0, 600]>} : (index) -> i1
  %e = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 300], d0 in [301, 400]>} : (index) -> i1
  return %a, %b, %c, %d, %e : i1, i1, i1, i1, i1
}

// -----

// What the loop does not change is computed before it, but nothing leaves only a conditional.

// CHECK-LABEL: func.func @loops
// CHECK:         %[[TID:.*]] = gpu.thread_id
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[T4:.*]] = arith.muli %[[TID]], %c4
// CHECK-NEXT:      scf.for %[[I:[a-z0-9]+]] =
// CHECK-NEXT:        %[[SUM:.*]] = arith.addi %[[T4]], %[[I]]
// CHECK-NEXT:        arith.addi %[[SUM]], %c1
func.func @loops(%p: i1, %t: tensor<128xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 1 : index
  %n = arith.constant 3 : index
  %tid = gpu.thread_id x upper_bound 31
  scf.if %p {
    scf.for %i = %c0 to %n step %step {
      %k = "xgpu.apply_indexing"(%i, %tid) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 4 + 1), d0 in [0, 2], d1 in [0, 30]>}
        : (index, index) -> index
      %u = tensor.insert %v into %t[%k] : tensor<128xf32>
    }
  }
  return
}

// -----

// Outside of the domain nothing is used, but it must not be poison: no flag that only the domain would justify.

// CHECK-LABEL: func.func @flags
// CHECK-SAME:    (%[[I:.*]]: index {{{.*}}})
// CHECK:         arith.subi %[[I]], %c5 overflow<nsw> : index
func.func @flags(%i: index {xgpu.range = array<i64: 0, 100>}) -> index {
  %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 - 5), d0 in [5, 100]>} : (index) -> index
  return %k : index
}

// -----

// 64 bits: an intermediate value, a tensor, or a loop is too large for 32. One function decides for all.

// CHECK-LABEL: func.func @intermediate
// CHECK-SAME:    attributes {xgpu.index_bits = 64 : i64}
// CHECK-LABEL: func.func private @other
// CHECK-SAME:    attributes {xgpu.index_bits = 64 : i64}
func.func @intermediate(%i: index {xgpu.range = array<i64: 0, 2000000000>}) -> index {
  %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> ((d0 * 2) floordiv 3), d0 in [0, 2000000000]>} : (index) -> index
  return %k : index
}
func.func private @other(%i: index {xgpu.range = array<i64: 0, 2>}) -> index {
  return %i : index
}

// -----

// CHECK-LABEL: func.func @large_tensor
// CHECK-SAME:    xgpu.index_bits = 64
func.func @large_tensor(%t: tensor<2147483648xi8>) {
  return
}

// -----

// CHECK-LABEL: func.func @largest_small_tensor
// CHECK-SAME:    xgpu.index_bits = 32
func.func @largest_small_tensor(%t: tensor<2147483647xi8>) {
  return
}

// -----

// CHECK-LABEL: func.func @long_loop
// CHECK-SAME:    xgpu.index_bits = 64
func.func @long_loop() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 3000000000 : index
  scf.for %i = %c0 to %n step %c1 {
  }
  return
}

// -----

// A runtime index is as small as what it is clamped to; without a clamp it may be anything.

// CHECK-LABEL: func.func @clamped
// CHECK-SAME:    xgpu.index_bits = 32
func.func @clamped(%i: i64) -> index {
  %c0 = arith.constant 0 : i64
  %c99 = arith.constant 99 : i64
  %low = arith.maxsi %i, %c0 : i64
  %high = arith.minsi %low, %c99 : i64
  %k = arith.index_cast %high : i64 to index
  return %k : index
}

// -----

// CHECK-LABEL: func.func @not_clamped
// CHECK-SAME:    xgpu.index_bits = 64
func.func @not_clamped(%i: i64) -> index {
  %k = arith.index_cast %i : i64 to index
  return %k : index
}

// -----

// A step of zero says nothing of the index.

// CHECK-LABEL: func.func @no_step
// CHECK-SAME:    xgpu.index_bits = 32
func.func @no_step() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c0 {
    %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 7]>} : (index) -> index
    "gpu.barrier"() : () -> ()
  }
  return
}
