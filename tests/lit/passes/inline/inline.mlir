// RUN: xgpu-opt %s -p inline --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'inline{max-ops=0 max-copies=0}' --split-input-file | FileCheck %s --check-prefix=ONCE
// RUN: xgpu-opt %s -p 'inline{max-depth=1}' --split-input-file | FileCheck %s --check-prefix=FLAT

// Small callees go into every caller, the others where they are called once; nobody is left to call them.

// CHECK-LABEL: func.func @small_and_once
// CHECK-SAME:    (%[[T:.*]]: tensor<8xf32>, %[[I:.*]]: index)
// CHECK-NEXT:    %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[X:.*]] = tensor.extract %[[T]][%[[I]]]
// CHECK-NEXT:    %[[N:.*]] = arith.negf %[[X]]
// CHECK-NEXT:    %[[Y:.*]] = tensor.extract %[[T]][%[[C0]]]
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[N]], %[[Y]]
// CHECK-NEXT:    return %[[SUM]]
// CHECK-NOT:   func.func
// ONCE-LABEL:  func.func @small_and_once
// ONCE:          xgpu.pure_call{{.*}}@small
// ONCE:          arith.negf
// ONCE:          xgpu.pure_call{{.*}}@small
// ONCE:        func.func private @small
// ONCE-NOT:    func.func private @once
func.func @small_and_once(%t: tensor<8xf32>, %i: index) -> f32 attributes {xgpu.kernel} {
  %c0 = arith.constant 0 : index
  %x = "xgpu.pure_call"(%t, %i) {callee = @once} : (tensor<8xf32>, index) -> f32
  %y = "xgpu.pure_call"(%t, %c0) {callee = @small} : (tensor<8xf32>, index) -> f32
  %sum = arith.addf %x, %y : f32
  return %sum : f32
}
func.func private @once(%t: tensor<8xf32>, %i: index {xgpu.range = array<i64: 0, 7>}) -> f32 {
  %x = "xgpu.pure_call"(%t, %i) {callee = @small} : (tensor<8xf32>, index) -> f32
  %n = arith.negf %x : f32
  return %n : f32
}
func.func private @small(%t: tensor<8xf32>, %i: index {xgpu.range = array<i64: 0, 7>}) -> f32 {
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x : f32
}

// -----

// Equal calls and index operations merge where one is in the same block or one around, and nowhere else.

// CHECK-LABEL: func.func @merge
// CHECK:         %[[J:.*]] = "xgpu.apply_indexing"
// CHECK-NOT:     xgpu.apply_indexing
// CHECK:         %[[X:.*]] = tensor.extract %{{.*}}[%[[J]]]
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      arith.addf %[[X]], %[[X]]
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK:         scf.if
// CHECK-NEXT:      tensor.extract
// CHECK:         } else {
// CHECK-NEXT:      tensor.extract
// CHECK-NOT:   func.func
func.func @merge(%t: tensor<8xf32>, %i: index, %c: i1) -> (f32, f32) {
  %j = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 + 1), d0 in [0, 6]>} : (index) -> index
  %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 + 1), d0 in [0, 6]>} : (index) -> index
  %x = "xgpu.pure_call"(%t, %j) {callee = @element} : (tensor<8xf32>, index) -> f32
  %r = scf.if %c -> f32 {
    %y = "xgpu.pure_call"(%t, %k) {callee = @element} : (tensor<8xf32>, index) -> f32
    %z = arith.addf %x, %y : f32
    scf.yield %z : f32
  } else {
    scf.yield %x : f32
  }
  %s = scf.if %c -> f32 {
    %y = "xgpu.pure_call"(%t, %i) {callee = @element} : (tensor<8xf32>, index) -> f32
    scf.yield %y : f32
  } else {
    %y = "xgpu.pure_call"(%t, %i) {callee = @element} : (tensor<8xf32>, index) -> f32
    scf.yield %y : f32
  }
  return %r, %s : f32, f32
}
func.func private @element(%t: tensor<8xf32>, %i: index) -> f32 {
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x : f32
}

// -----

// What is not used goes away: calls, what only feeds them, and functions that only they call. Public functions stay.

// CHECK-LABEL: func.func @unused
// CHECK-NEXT:    return
// CHECK-NEXT:  }
// CHECK-NEXT:  func.func @public
// CHECK-NOT:   func.func
func.func @unused(%i: index, %x: f32) -> f32 {
  %j = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 + 1), d0 in [0, 6]>} : (index) -> index
  %y = "xgpu.pure_call"(%j) {callee = @only_unused} : (index) -> f32
  return %x : f32
}
func.func @public(%i: index) -> index {
  return %i : index
}
func.func private @only_unused(%i: index) -> f32 {
  %x = "xgpu.pure_call"(%i) {callee = @deeper} : (index) -> f32
  return %x : f32
}
func.func private @deeper(%i: index) -> f32 {
  %x = arith.constant 1.0 : f32
  return %x : f32
}

// -----

// Merging may leave one call of a function that had several.

// CHECK-LABEL: func.func @once_after_merge
// CHECK-COUNT-1: math.exp
// CHECK-NOT:   func.func
// ONCE-LABEL: func.func @once_after_merge
// ONCE-COUNT-1: math.exp
// ONCE-NOT:    func.func private @exp
func.func @once_after_merge(%x: f32) -> f32 {
  %y = "xgpu.pure_call"(%x) {callee = @exp} : (f32) -> f32
  %z = "xgpu.pure_call"(%x) {callee = @via} : (f32) -> f32
  %sum = arith.addf %y, %z : f32
  return %sum : f32
}
func.func private @via(%x: f32) -> f32 {
  %y = "xgpu.pure_call"(%x) {callee = @exp} : (f32) -> f32
  return %y : f32
}
func.func private @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// -----

// Regions are not nested deeper than the limit.

// CHECK-LABEL: func.func @nested
// CHECK-NOT:     xgpu.pure_call
// CHECK-NOT:   func.func
// FLAT-LABEL:  func.func @nested
// FLAT:          scf.if
// FLAT-NEXT:       xgpu.pure_call{{.*}}@inner
// FLAT:        func.func private @inner
func.func @nested(%c: i1, %x: f32) -> f32 {
  %y = scf.if %c -> f32 {
    %z = "xgpu.pure_call"(%c, %x) {callee = @inner} : (i1, f32) -> f32
    scf.yield %z : f32
  } else {
    scf.yield %x : f32
  }
  return %y : f32
}
func.func private @inner(%c: i1, %x: f32) -> f32 {
  %y = scf.if %c -> f32 {
    %z = arith.negf %x : f32
    scf.yield %z : f32
  } else {
    scf.yield %x : f32
  }
  return %y : f32
}

// -----

// A function that is referred to in another way than by a pure call stays, and so does one of several blocks.

// CHECK-LABEL: func.func @other_uses
// CHECK:         xgpu.pure_call{{.*}}@blocks
// CHECK:         call @called
// CHECK:       func.func private @blocks
// CHECK:       func.func private @called
func.func @other_uses(%x: f32) -> f32 {
  %y = "xgpu.pure_call"(%x) {callee = @blocks} : (f32) -> f32
  %z = func.call @called(%y) : (f32) -> f32
  return %z : f32
}
func.func private @blocks(%x: f32) -> f32 {
  cf.br ^next
^next:
  return %x : f32
}
func.func private @called(%x: f32) -> f32 {
  return %x : f32
}

// -----

// A callee that is not small is inlined as well if all copies of it together are not many operations.

// CHECK-LABEL: func.func @rarely
// CHECK-COUNT-30: math.exp
// CHECK-COUNT-30: math.exp
// CHECK-NOT:   func.func
// ONCE-LABEL:  func.func @rarely
// ONCE-COUNT-2:  xgpu.pure_call{{.*}}@middling
func.func @rarely(%t: tensor<8xf32>, %i: index, %j: index) -> f32 attributes {xgpu.kernel} {
  %x = "xgpu.pure_call"(%t, %i) {callee = @middling} : (tensor<8xf32>, index) -> f32
  %y = "xgpu.pure_call"(%t, %j) {callee = @middling} : (tensor<8xf32>, index) -> f32
  %sum = arith.addf %x, %y : f32
  return %sum : f32
}
func.func private @middling(%t: tensor<8xf32>, %i: index {xgpu.range = array<i64: 0, 7>}) -> f32 {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  %1 = math.exp %0 : f32
  %2 = math.exp %1 : f32
  %3 = math.exp %2 : f32
  %4 = math.exp %3 : f32
  %5 = math.exp %4 : f32
  %6 = math.exp %5 : f32
  %7 = math.exp %6 : f32
  %8 = math.exp %7 : f32
  %9 = math.exp %8 : f32
  %10 = math.exp %9 : f32
  %11 = math.exp %10 : f32
  %12 = math.exp %11 : f32
  %13 = math.exp %12 : f32
  %14 = math.exp %13 : f32
  %15 = math.exp %14 : f32
  %16 = math.exp %15 : f32
  %17 = math.exp %16 : f32
  %18 = math.exp %17 : f32
  %19 = math.exp %18 : f32
  %20 = math.exp %19 : f32
  %21 = math.exp %20 : f32
  %22 = math.exp %21 : f32
  %23 = math.exp %22 : f32
  %24 = math.exp %23 : f32
  %25 = math.exp %24 : f32
  %26 = math.exp %25 : f32
  %27 = math.exp %26 : f32
  %28 = math.exp %27 : f32
  %29 = math.exp %28 : f32
  %30 = math.exp %29 : f32
  return %30 : f32
}
