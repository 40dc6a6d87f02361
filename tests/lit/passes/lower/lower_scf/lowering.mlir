// RUN: xgpu-opt %s -p lower-scf --split-input-file | FileCheck %s

// A loop that surely runs tests at its end, whether the next value is the one past the last.

// CHECK-LABEL: func.func @constant_bounds
// CHECK-DAG:     %[[LOWER:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[STEP:.*]] = arith.constant 3 : index
// CHECK:         cf.br ^[[BODY:.*]](%[[LOWER]], %arg0 : index, f32)
// CHECK-NEXT:  ^[[BODY]](%[[I:.*]]: index, %[[A:.*]]: f32):
// CHECK-NEXT:    %[[B:.*]] = arith.addf %[[A]], %[[A]] : f32
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[I]], %[[STEP]] : index
// CHECK-NEXT:    %[[END:.*]] = arith.constant 10 : index
// CHECK-NEXT:    %[[MORE:.*]] = arith.cmpi ne, %[[NEXT]], %[[END]] : index
// CHECK-NEXT:    cf.cond_br %[[MORE]], ^[[BODY]](%[[NEXT]], %[[B]] : index, f32), ^[[AFTER:[^ ]*]]
// CHECK-NOT:     loop_annotation
// CHECK:       ^[[AFTER]]:
// CHECK-NEXT:    return %[[B]] : f32
func.func @constant_bounds(%x: f32) -> f32 {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c1 to %c8 step %c3 iter_args(%a = %x) -> (f32) {
    %b = arith.addf %a, %a : f32
    scf.yield %b : f32
  }
  return %r : f32
}

// -----

// Any other loop tests first.

// CHECK-LABEL: func.func @unknown_bound
// CHECK:         cf.br ^[[HEAD:.*]](%{{.*}}, %arg0 : index, f32)
// CHECK-NEXT:  ^[[HEAD]](%[[I:.*]]: index, %[[A:.*]]: f32):
// CHECK-NEXT:    %[[MORE:.*]] = arith.cmpi slt, %[[I]], %arg1 : index
// CHECK-NEXT:    cf.cond_br %[[MORE]], ^[[BODY:.*]], ^[[AFTER:.*]]
// CHECK-NEXT:  ^[[BODY]]:
// CHECK-NEXT:    %[[B:.*]] = arith.addf %[[A]], %[[A]] : f32
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK-NEXT:    cf.br ^[[HEAD]](%[[NEXT]], %[[B]] : index, f32)
// CHECK-NEXT:  ^[[AFTER]]:
// CHECK-NEXT:    return %[[A]] : f32
func.func @unknown_bound(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %b = arith.addf %a, %a : f32
    scf.yield %b : f32
  }
  return %r : f32
}

// -----

// A branch that only yields needs no block.

// CHECK-LABEL: func.func @conditional
// CHECK-NEXT:    cf.cond_br %arg0, ^[[THEN:.*]], ^[[AFTER:.*]](%arg1 : f32)
// CHECK-NEXT:  ^[[THEN]]:
// CHECK-NEXT:    %[[N:.*]] = arith.negf %arg1 : f32
// CHECK-NEXT:    cf.br ^[[AFTER]](%[[N]] : f32)
// CHECK-NEXT:  ^[[AFTER]](%[[R:.*]]: f32):
// CHECK-NEXT:    return %[[R]] : f32
func.func @conditional(%c: i1, %x: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    %n = arith.negf %x : f32
    scf.yield %n : f32
  } else {
    scf.yield %x : f32
  }
  return %r : f32
}

// -----

// CHECK-LABEL: func.func @without_else
// CHECK-NEXT:    cf.cond_br %arg0, ^[[THEN:.*]], ^[[AFTER:.*]]
// CHECK-NEXT:  ^[[THEN]]:
// CHECK-NEXT:    llvm.store
// CHECK-NEXT:    cf.br ^[[AFTER]]
// CHECK-NEXT:  ^[[AFTER]]:
// CHECK-NEXT:    return
func.func @without_else(%c: i1, %x: f32, %p: !llvm.ptr<1>) {
  scf.if %c {
    llvm.store %x, %p : f32, !llvm.ptr<1>
  }
  return
}

// -----

// CHECK-LABEL: func.func @general_loop
// CHECK:         cf.br ^[[HEAD:.*]](%arg0 : i32)
// CHECK-NEXT:  ^[[HEAD]](%[[N:.*]]: i32):
// CHECK-NEXT:    %[[MORE:.*]] = arith.cmpi sgt, %[[N]], %arg1 : i32
// CHECK-NEXT:    %[[D:.*]] = arith.addi %[[N]], %[[N]] : i32
// CHECK-NEXT:    cf.cond_br %[[MORE]], ^[[BODY:.*]], ^[[AFTER:.*]]
// CHECK-NEXT:  ^[[BODY]]:
// CHECK-NEXT:    %[[S:.*]] = arith.subi %[[D]], %arg1 : i32
// CHECK-NEXT:    cf.br ^[[HEAD]](%[[S]] : i32)
// CHECK-NEXT:  ^[[AFTER]]:
// CHECK-NEXT:    return %[[D]] : i32
func.func @general_loop(%x: i32, %y: i32) -> i32 {
  %r = scf.while (%n = %x) : (i32) -> i32 {
    %more = arith.cmpi sgt, %n, %y : i32
    %d = arith.addi %n, %n : i32
    scf.condition(%more) %d : i32
  } do {
  ^bb0(%m: i32):
    %s = arith.subi %m, %y : i32
    scf.yield %s : i32
  }
  return %r : i32
}

// -----

// What xgpu.unroll says goes to the branch back, of the inner and of the outer loop.

// CHECK:       #[[FULL:.*]] = #llvm.loop_unroll<full = true>
// CHECK-NEXT:  #[[NONE:.*]] = #llvm.loop_unroll<disable = true>
// CHECK-NEXT:  #[[UNROLL:.*]] = #llvm.loop_annotation<unroll = #[[FULL]]>
// CHECK-NEXT:  #[[KEEP:.*]] = #llvm.loop_annotation<unroll = #[[NONE]]>
// CHECK-LABEL: func.func @unroll
// CHECK:       ^[[OUTER:.*]](%{{.*}}: index):
// CHECK:       ^[[INNER:.*]](%{{.*}}: index):
// CHECK:         cf.cond_br %{{.*}}, ^[[INNER]]({{.*}}), ^{{.*}} {loop_annotation = #[[UNROLL]]}
// CHECK:         cf.cond_br %{{.*}}, ^[[OUTER]]({{.*}}), ^{{.*}} {loop_annotation = #[[KEEP]]}
func.func @unroll(%x: f32, %p: !llvm.ptr<1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      llvm.store %x, %p : f32, !llvm.ptr<1>
    } {xgpu.unroll = "full"}
  } {xgpu.unroll = "none"}
  return
}

// -----

// Conditionals and loops beside and inside each other keep their order.

// CHECK-LABEL: func.func @nest
// CHECK:         cf.cond_br %arg0
// CHECK:         arith.addf
// CHECK:         cf.cond_br %arg1
// CHECK:         arith.subf
// CHECK:         arith.mulf
// CHECK:         cf.cond_br %arg1
// CHECK:         arith.divf
// CHECK-NOT:     scf.
func.func @nest(%c: i1, %d: i1, %x: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    %a = arith.addf %x, %x : f32
    %s = scf.if %d -> (f32) {
      %b = arith.subf %a, %x : f32
      scf.yield %b : f32
    } else {
      scf.yield %x : f32
    }
    %m = arith.mulf %s, %a : f32
    scf.yield %m : f32
  } else {
    scf.yield %x : f32
  }
  %t = scf.if %d -> (f32) {
    %e = arith.divf %r, %x : f32
    scf.yield %e : f32
  } else {
    scf.yield %r : f32
  }
  return %t : f32
}

// -----

// A step of zero has no number of iterations.

// CHECK-LABEL: func.func @no_step
// CHECK:         cf.br ^[[HEADER:.*]](%c0 : index)
// CHECK-NEXT:  ^[[HEADER]](%[[I:.*]]: index):
// CHECK-NEXT:    arith.cmpi slt, %[[I]], %c8 : index
func.func @no_step() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c0 {
  }
  return
}
