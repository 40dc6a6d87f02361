// RUN: xgpu-opt %s -p simplify-indexing --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'simplify-indexing{max-size=4}' --split-input-file | FileCheck %s --check-prefix=SMALL

// Linearising what was delinearised: divisions cancel, symbols become dimensions, the operations between go away.

// CHECK-LABEL: func.func @compose
// CHECK-NEXT:    %[[TID:.*]] = gpu.thread_id
// CHECK-NOT:     apply_indexing
// CHECK:         scf.for %[[S:[a-z0-9]+]] =
// CHECK-NEXT:      %[[K:.*]] = "xgpu.apply_indexing"(%[[TID]], %[[S]])
// CHECK-SAME:        {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 31], d1 in [0, 3]>} : (index, index) -> index
// CHECK-NEXT:      tensor.insert {{.*}}[%[[K]]]
func.func @compose(%t: tensor<128xf32>, %v: f32) {
  %tid = gpu.thread_id x upper_bound 32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %s = %c0 to %c4 step %c1 {
    %n = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 31], s0 in [0, 3]>}
      : (index, index) -> index
    %i, %j = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 floordiv 16, d0 mod 16), d0 in [0, 127]>}
      : (index) -> (index, index)
    %k = "xgpu.apply_indexing"(%i, %j) {map = #xgpu.map<(d0, d1) -> (d0 * 16 + d1), d0 in [0, 7], d1 in [0, 15]>}
      : (index, index) -> index
    %u = tensor.insert %v into %t[%k] : tensor<128xf32>
  }
  return
}

// -----

// Constants are folded in; results that are a constant or a variable need no operation; unused variables go.

// CHECK-LABEL: func.func @trivial
// CHECK-SAME:    (%[[I:.*]]: index {{{.*}}}, %[[J:.*]]: index {{{.*}}})
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C21:.*]] = arith.constant 21 : index
// CHECK:         %[[L:.*]] = "xgpu.apply_indexing"(%[[J]]) {map = #xgpu.map<(d0) -> (d0 + 20), d0 in [0, 9]>}
// CHECK-NEXT:    return %[[C0]], %[[I]], %[[C21]], %[[L]]
func.func @trivial(%i: index {xgpu.range = array<i64: 0, 7>}, %j: index {xgpu.range = array<i64: 0, 9>})
    -> (index, index, index, index) {
  %c10 = arith.constant 10 : index
  %a, %b, %c, %d = "xgpu.apply_indexing"(%i, %c10, %j)
    {map = #xgpu.map<(d0, d1, d2) -> (d0 floordiv 8, d0 mod 8, d1 * 2 + 1, d2 + d1 * 2),
     d0 in [0, 100], d1 in [0, 100], d2 in [0, 100]>} : (index, index, index) -> (index, index, index, index)
  return %a, %b, %c, %d : index, index, index, index
}

// -----

// What a condition tests: nothing, the side that can fail, something that cannot hold.

// CHECK-LABEL: func.func @conditions
// CHECK-DAG:     %[[FALSE:.*]] = arith.constant false
// CHECK-DAG:     %[[TRUE:.*]] = arith.constant true
// CHECK:         %[[P:.*]] = "xgpu.in_domain"(%{{.*}}) {map = #xgpu.map<(d0) -> (), d0 in [0, 31], d0 in [0, 24]>}
// CHECK-NEXT:    return %[[TRUE]], %[[P]], %[[FALSE]]
func.func @conditions() -> (i1, i1, i1) {
  %tid = gpu.thread_id x upper_bound 32
  %n = "xgpu.apply_indexing"(%tid) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 31]>} : (index) -> index
  %a = "xgpu.in_domain"(%n) {map = #xgpu.map<(d0) -> (), d0 in [0, 124], d0 in [0, 200]>} : (index) -> i1
  %b = "xgpu.in_domain"(%n) {map = #xgpu.map<(d0) -> (), d0 in [0, 124], d0 in [-7, 99]>} : (index) -> i1
  %c = "xgpu.in_domain"(%n) {map = #xgpu.map<(d0) -> (), d0 in [0, 124], d0 in [125, 126]>} : (index) -> i1
  return %a, %b, %c : i1, i1, i1
}

// -----

// A comparison with a constant whose multiple makes the loop's variable irrelevant leaves the loop.

// CHECK-LABEL: func.func @invariant_check
// CHECK-SAME:    (%[[I:.*]]: index {{{.*}}})
// CHECK:         %[[P:.*]] = "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 31], d0 in [0, 24]>}
// CHECK:         scf.for
// CHECK-NEXT:      scf.if %[[P]]
// CHECK-NEXT:        scf.if %[[P]]
// CHECK-NOT:     arith.cmpi
func.func @invariant_check(%i: index {xgpu.range = array<i64: 0, 31>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c100 = arith.constant 100 : index
  scf.for %s = %c0 to %c4 step %c1 {
    %k = "xgpu.apply_indexing"(%i, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 31], d1 in [0, 3]>}
      : (index, index) -> index
    %p = arith.cmpi slt, %k, %c100 : index
    %q = arith.cmpi ugt, %c100, %k : index
    scf.if %p {
      scf.if %q {
        llvm.intr.assume %p : i1
      }
    }
  }
  return
}

// -----

// Comparisons of other things, and those that no interval describes, stay.

// CHECK-LABEL: func.func @other_checks
// CHECK:         arith.cmpi ne
// CHECK-NEXT:    arith.cmpi ult
// CHECK-NEXT:    arith.cmpi slt
func.func @other_checks(%i: index {xgpu.range = array<i64: -9, 31>}, %n: i32) -> (i1, i1, i1) {
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : i32
  %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [-9, 31]>} : (index) -> index
  %p = arith.cmpi ne, %k, %c5 : index
  %q = arith.cmpi ult, %k, %c5 : index
  %r = arith.cmpi slt, %n, %c7 : i32
  return %p, %q, %r : i1, i1, i1
}

// -----

// Equal computations merge where one dominates, and are then defined where either was. Neither branch dominates the other.

// CHECK-LABEL: func.func @merge
// CHECK-SAME:    (%[[I:.*]]: index {{{.*}}}, %[[P:.*]]: i1)
// CHECK-NEXT:    %[[K:.*]] = "xgpu.apply_indexing"(%[[I]]) {map = #xgpu.map<(d0) -> (d0 * 3), d0 in [0, 31]>}
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[P]]
// CHECK-NEXT:      %[[A:.*]] = "xgpu.apply_indexing"(%[[I]]) {map = #xgpu.map<(d0) -> (d0 * 5), d0 in [0, 31]>}
// CHECK-NEXT:      scf.yield %[[K]], %[[A]]
// CHECK-NEXT:    else
// CHECK-NEXT:      %[[B:.*]] = "xgpu.apply_indexing"(%[[I]]) {map = #xgpu.map<(d0) -> (d0 * 5), d0 in [0, 31]>}
// CHECK-NEXT:      scf.yield %[[B]], %[[B]]
// CHECK:         return %[[K]]
func.func @merge(%i: index {xgpu.range = array<i64: 0, 31>}, %p: i1) -> (index, index, index) {
  %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 3), d0 in [0, 9]>} : (index) -> index
  %r:2 = scf.if %p -> (index, index) {
    %l = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 3), d0 in [0, 31]>} : (index) -> index
    %a = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 5), d0 in [0, 31]>} : (index) -> index
    scf.yield %l, %a : index, index
  } else {
    %b = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 5), d0 in [0, 31]>} : (index) -> index
    scf.yield %b, %b : index, index
  }
  return %k, %r#0, %r#1 : index, index, index
}

// -----

// Out of loops as far as the operands allow, through conditionals inside the loop, but not out of a conditional alone.

// CHECK-LABEL: func.func @hoist
// CHECK:         scf.if
// CHECK-NEXT:      "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (d0 * 3),
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        "xgpu.apply_indexing"({{.*}}) {map = #xgpu.map<(d0, d1) -> (d0 * 5 + d1),
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          scf.if
// CHECK-NEXT:            "xgpu.apply_indexing"({{.*}}) {map = #xgpu.map<(d0, d1) -> (d0 * 7 + d1),
// CHECK-NEXT:            tensor.extract
func.func @hoist(%t: tensor<512xf32>, %p: i1, %i: index {xgpu.range = array<i64: 0, 31>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.if %p {
    scf.for %x = %c0 to %c4 step %c1 {
      scf.for %y = %c0 to %c4 step %c1 {
        scf.if %p {
          %a = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 3), d0 in [0, 31]>} : (index) -> index
          %b = "xgpu.apply_indexing"(%i, %x) {map = #xgpu.map<(d0, d1) -> (d0 * 5 + d1), d0 in [0, 31], d1 in [0, 3]>}
            : (index, index) -> index
          %c = "xgpu.apply_indexing"(%i, %y) {map = #xgpu.map<(d0, d1) -> (d0 * 7 + d1), d0 in [0, 31], d1 in [0, 3]>}
            : (index, index) -> index
          %u = tensor.extract %t[%c] : tensor<512xf32>
          %v = tensor.insert %u into %t[%b] : tensor<512xf32>
          %w = tensor.insert %u into %v[%a] : tensor<512xf32>
        }
      }
    }
  }
  return
}

// -----

// A clamped runtime index is in its clamp's range. Calls without users are dead, whatever makes their operands.

// CHECK-LABEL: func.func @runtime_index
// CHECK:         %[[I:.*]] = arith.index_cast
// CHECK-NOT:     xgpu
// CHECK:         return %[[I]]
func.func @runtime_index(%i: i32) -> index {
  %c0 = arith.constant 0 : i32
  %c99 = arith.constant 99 : i32
  %low = arith.maxsi %i, %c0 : i32
  %high = arith.minsi %low, %c99 : i32
  %k = arith.index_cast %high : i32 to index
  %m = "xgpu.apply_indexing"(%k) {map = #xgpu.map<(d0) -> (d0 mod 100), d0 in [0, 1000]>} : (index) -> index
  %n = "xgpu.apply_indexing"(%k) {map = #xgpu.map<(d0) -> (d0 * 3), d0 in [0, 1000]>} : (index) -> index
  %x = "xgpu.pure_call"(%n) {callee = @callee} : (index) -> index
  %y = "xgpu.pure_call"(%x) {callee = @callee} : (index) -> index
  return %m : index
}
func.func private @callee(%i: index) -> index {
  return %i : index
}

// -----

// The same function as before: nothing to do is nothing done.

// CHECK-LABEL: func.func @unchanged
// CHECK-NEXT:    %[[K:.*]] = "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (d0 * 2), d0 in [0, 9]>}
// CHECK-NEXT:    %[[P:.*]] = "xgpu.in_domain"(%{{.*}}) {map = #xgpu.map<(d0) -> (), d0 in [0, 9], d0 in [0, 4]>}
// CHECK-NEXT:    return %[[K]], %[[P]]
func.func @unchanged(%i: index {xgpu.range = array<i64: 0, 9>}) -> (index, i1) {
  %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 2), d0 in [0, 9]>} : (index) -> index
  %p = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 9], d0 in [0, 4]>} : (index) -> i1
  return %k, %p : index, i1
}

// -----

// An expression that grows too large is left as a computation from the operands of the last operation.

// CHECK-LABEL: func.func @limit
// CHECK-NEXT:    %[[J:.*]] = "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (((d0 mod 17) * 5) mod 7), d0 in [0, 99]>}
// CHECK-NEXT:    return %[[J]]
// SMALL-LABEL: func.func @limit
// SMALL-NEXT:    %[[I:.*]] = "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (d0 mod 17), d0 in [0, 99]>}
// SMALL-NEXT:    %[[J:.*]] = "xgpu.apply_indexing"(%[[I]]) {map = #xgpu.map<(d0) -> ((d0 * 5) mod 7), d0 in [0, 16]>}
// SMALL-NEXT:    return %[[J]]
func.func @limit(%n: index {xgpu.range = array<i64: 0, 99>}) -> index {
  %i = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 mod 17), d0 in [0, 99]>} : (index) -> index
  %j = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> ((d0 * 5) mod 7), d0 in [0, 16]>} : (index) -> index
  return %j : index
}

// -----

// Composed, this would be d0 * 100000000 - d1 * 100000000: 64-bit arithmetic where 32 bits were enough.

// CHECK-LABEL: func.func @stays_narrow
// CHECK-NEXT:    %[[I:.*]] = "xgpu.apply_indexing"({{.*}}) {map = #xgpu.map<(d0, d1) -> (d0 * 100000 - d1 * 100000),
// CHECK-NEXT:    %[[J:.*]] = "xgpu.apply_indexing"(%[[I]]) {map = #xgpu.map<(d0) -> (d0 * 1000), d0 in [0, 900000]>}
// CHECK-NEXT:    return %[[J]]
func.func @stays_narrow(%n: index {xgpu.range = array<i64: 0, 200>}, %m: index {xgpu.range = array<i64: 0, 200>})
    -> index {
  %i = "xgpu.apply_indexing"(%n, %m)
    {map = #xgpu.map<(d0, d1) -> (d0 * 100000 - d1 * 100000), d0 in [0, 200], d1 in [0, 200]>} : (index, index) -> index
  %j = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 * 1000), d0 in [0, 900000]>} : (index) -> index
  return %j : index
}

// -----

// Of an index of unknown range nothing follows, and nothing is written down that does not fit 64 bits.

// CHECK-LABEL: func.func @unknown
// CHECK:         "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [-9223372036854775808, 9223372036854775807]>}
// CHECK:         arith.cmpi slt
func.func @unknown(%n: index) -> i1 {
  %c8 = arith.constant 8 : index
  %i = "xgpu.apply_indexing"(%n)
    {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [-9223372036854775808, 9223372036854775807]>} : (index) -> index
  %p = arith.cmpi slt, %i, %c8 : index
  return %p : i1
}

// -----

// Several blocks: an index is known in the blocks that its own dominates, and what one branch computes is not there for
// what comes after it. A block's argument is no parameter of the function.

// CHECK-LABEL: func.func @branches
// CHECK-SAME:    (%[[C:.*]]: i1, %[[I:.*]]: index {{.*}}, %[[J:.*]]: index)
// CHECK:         cf.cond_br
// CHECK-NEXT:  ^bb1(%{{.*}}: index):
// CHECK-NEXT:    cf.br ^bb2(%[[I]] : index)
// CHECK-NEXT:  ^bb2(%[[R:.*]]: index):
// CHECK-NEXT:    "xgpu.apply_indexing"(%[[I]], %[[R]]) {map = #xgpu.map<(d0, d1) -> (d1 * 2 + d0 floordiv 16), d0 in [0, 63], d1 in [0, 999]>}
// CHECK-NEXT:    return %[[I]]
func.func @branches(%c: i1, %i: index {xgpu.range = array<i64: 0, 63>}, %j: index) -> (index, index) {
  %a = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 floordiv 16), d0 in [0, 63]>} : (index) -> index
  cf.cond_br %c, ^bb1(%j : index), ^bb2(%j : index)
^bb1(%p: index):
  %b = "xgpu.apply_indexing"(%a, %i) {map = #xgpu.map<(d0, d1) -> (d0 * 16 + d1 mod 16), d0 in [0, 3], d1 in [0, 63]>} : (index, index) -> index
  cf.br ^bb2(%b : index)
^bb2(%r: index):
  %d = "xgpu.apply_indexing"(%a, %i) {map = #xgpu.map<(d0, d1) -> (d0 * 16 + d1 mod 16), d0 in [0, 3], d1 in [0, 63]>} : (index, index) -> index
  %e = "xgpu.apply_indexing"(%a, %r) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 2), d0 in [0, 3], d1 in [0, 999]>} : (index, index) -> index
  return %d, %e : index, index
}
