// RUN: xgpu-opt %s -p simplify-arith --split-input-file | FileCheck %s

// Comparisons that ranges decide; the one that they do not stays.

// CHECK-LABEL: func.func @compare
// CHECK-SAME:    %[[X:.*]]: index {xgpu.range = array<i64: -5, 300>}
// CHECK-DAG:     %[[FALSE:.*]] = arith.constant false
// CHECK-DAG:     %[[TRUE:.*]] = arith.constant true
// CHECK:         %[[OPEN:.*]] = arith.cmpi slt, %[[X]]
// CHECK-NEXT:    %[[UNSIGNED:.*]] = arith.cmpi ult, %[[X]]
// CHECK-NEXT:    return %[[TRUE]], %[[FALSE]], %[[FALSE]], %[[TRUE]], %[[OPEN]], %[[UNSIGNED]]
func.func @compare(%x: index {xgpu.range = array<i64: -5, 300>}) -> (i1, i1, i1, i1, i1, i1) {
  %tid = gpu.thread_id x upper_bound 32
  %c32 = arith.constant 32 : index
  %c300 = arith.constant 300 : index
  %a = arith.cmpi ult, %tid, %c32 : index
  %b = arith.cmpi eq, %tid, %c32 : index
  %c = arith.cmpi sgt, %x, %c300 : index
  %d = arith.cmpi ne, %tid, %c300 : index
  %e = arith.cmpi slt, %x, %c300 : index
  // A negative number is a large one without sign.
  %f = arith.cmpi ult, %x, %c300 : index
  return %a, %b, %c, %d, %e, %f : i1, i1, i1, i1, i1, i1
}

// -----

// A runtime index that is clamped twice, or to more than its type holds.

// CHECK-LABEL: func.func @clamp
// CHECK-SAME:    (%[[I:.*]]: i64, %[[S:.*]]: i8)
// CHECK:         %[[LOW:.*]] = arith.maxsi %[[I]]
// CHECK-NEXT:    %[[CLAMPED:.*]] = arith.minsi %{{.*}}, %[[LOW]]
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extsi %[[S]]
// CHECK-NEXT:    %[[INDEX:.*]] = arith.index_cast %[[CLAMPED]]
// CHECK-NEXT:    return %[[CLAMPED]], %[[WIDE]], %[[INDEX]], %[[CLAMPED]]
func.func @clamp(%i: i64, %s: i8) -> (i64, i32, index, i64) {
  %c0 = arith.constant 0 : i64
  %c99 = arith.constant 99 : i64
  %c200 = arith.constant 200 : i32
  %low = arith.maxsi %i, %c0 : i64
  %clamped = arith.minsi %c99, %low : i64
  %again = arith.minsi %clamped, %c99 : i64
  %wide = arith.extsi %s : i8 to i32
  %all = arith.minsi %wide, %c200 : i32
  %index = arith.index_cast %again : i64 to index
  %back = arith.index_cast %index : index to i64
  return %again, %all, %index, %back : i64, i32, index, i64
}

// -----

// CHECK-LABEL: func.func @divide
// CHECK-SAME:    (%[[X:.*]]: index {{{.*}}}, %[[U:.*]]: index {{{.*}}})
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[REM:.*]] = arith.remui %[[U]]
// CHECK-NEXT:    %[[MASKED:.*]] = arith.andi %[[U]]
// CHECK-NEXT:    return %[[X]], %[[ZERO]], %[[REM]], %[[X]], %[[MASKED]]
func.func @divide(%x: index {xgpu.range = array<i64: 0, 31>}, %u: index {xgpu.range = array<i64: -1, 31>})
    -> (index, index, index, index, index) {
  %c32 = arith.constant 32 : index
  %c63 = arith.constant 63 : index
  %a = arith.remui %x, %c32 : index
  %b = arith.divui %x, %c32 : index
  %c = arith.remui %u, %c32 : index
  %d = arith.andi %c63, %x : index
  %e = arith.andi %u, %c63 : index
  return %a, %b, %c, %d, %e : index, index, index, index, index
}

// -----

// Casts in pairs go if they keep the value; true is -1 when it is extended by its sign.

// CHECK-LABEL: func.func @casts
// CHECK-SAME:    (%[[I:.*]]: i32, %[[J:.*]]: i64, %[[P:.*]]: i1)
// CHECK:         %[[NARROW:.*]] = arith.trunci %[[J]]
// CHECK-NEXT:    %[[BACK:.*]] = arith.extsi %[[NARROW]]
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extsi %[[P]]
// CHECK-NEXT:    %[[BIT:.*]] = arith.trunci %[[WIDE]]
// CHECK-NEXT:    return %[[I]], %[[BACK]], %[[BIT]]
func.func @casts(%i: i32, %j: i64, %p: i1) -> (i32, i64, i1) {
  %a = arith.extsi %i : i32 to i64
  %b = arith.trunci %a : i64 to i32
  %c = arith.trunci %j : i64 to i32
  %d = arith.extsi %c : i32 to i64
  %e = arith.extsi %p : i1 to i8
  %f = arith.trunci %e : i8 to i1
  return %b, %d, %f : i32, i64, i1
}

// -----

// Arithmetic that wraps around has no narrow range.

// CHECK-LABEL: func.func @wraps
// CHECK:         arith.cmpi sgt
func.func @wraps(%x: i8) -> i1 {
  %c100 = arith.constant 100 : i8
  %c0 = arith.constant 0 : i8
  %low = arith.maxsi %x, %c0 : i8
  %sum = arith.addi %low, %c100 : i8
  %p = arith.cmpi sgt, %sum, %c0 : i8
  return %p : i1
}

// -----

// The bounds of loops and branches are known; each rounding of a floating-point value stays.

// CHECK-LABEL: func.func @loop
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         scf.for
// CHECK:           llvm.intr.assume %[[TRUE]]
// CHECK-NEXT:      llvm.intr.assume %[[TRUE]]
// CHECK:         arith.truncf
// CHECK-NEXT:    arith.extf
func.func @loop(%p: i1, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
  %n = scf.if %p -> index {
    scf.yield %c1 : index
  } else {
    scf.yield %c5 : index
  }
  scf.for %i = %c0 to %n step %c1 {
    %small = arith.cmpi slt, %i, %c5 : index
    %large = arith.cmpi slt, %i, %c9 : index
    llvm.intr.assume %small : i1
    llvm.intr.assume %large : i1
  }
  %t = arith.truncf %x : f32 to bf16
  %r = arith.extf %t : bf16 to f32
  return %r : f32
}
