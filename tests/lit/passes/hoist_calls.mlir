// RUN: xgpu-opt %s -p hoist-calls --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'hoist-calls,loop-invariant-code-motion,unswitch-loops' --split-input-file | FileCheck %s --check-prefix=SWITCHED

// A call that each iteration makes with the same operands goes before the loop, with what it needs; what depends on it
// is left to other passes, such as the test by which the loop is then switched.

// CHECK-LABEL: func.func @row
// CHECK-SAME:    (%[[ROWS:.*]]: tensor<9xi32>, %[[N:.*]]: i32, %[[X:.*]]: f32)
// CHECK:         %[[NINE:.*]] = arith.constant 9 : i32
// CHECK-NEXT:    %[[LAST:.*]] = arith.minui %[[N]], %[[NINE]]
// CHECK-NEXT:    %[[I:.*]] = "xgpu.pure_call"(%[[ROWS]], %[[LAST]]) {callee = @index}
// CHECK-NEXT:    scf.for %[[K:[a-z0-9]+]] = %{{.*}} iter_args(%[[A:.*]] = %[[X]])
// CHECK-NEXT:      %[[IN:.*]] = arith.cmpi ult, %[[I]], %[[NINE]]
// CHECK-NEXT:      scf.if %[[IN]]
// CHECK-NEXT:        "xgpu.pure_call"(%[[ROWS]], %[[I]]) {callee = @index}
// SWITCHED-LABEL: func.func @row
// SWITCHED:         scf.if
// SWITCHED:           scf.for
// SWITCHED:           scf.for
func.func @row(%rows: tensor<9xi32>, %n: i32, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %nine = arith.constant 9 : i32
    %last = arith.minui %n, %nine : i32
    %i = "xgpu.pure_call"(%rows, %last) {callee = @index} : (tensor<9xi32>, i32) -> i32
    %in = arith.cmpi ult, %i, %nine : i32
    %y = scf.if %in -> (f32) {
      // Not every iteration makes this call.
      %j = "xgpu.pure_call"(%rows, %i) {callee = @index} : (tensor<9xi32>, i32) -> i32
      %f = arith.sitofp %j : i32 to f32
      %s = arith.addf %a, %f : f32
      scf.yield %s : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %y : f32
  }
  return %r : f32
}
func.func private @index(%rows: tensor<9xi32>, %n: i32) -> i32 {
  %i = arith.index_castui %n : i32 to index
  %x = tensor.extract %rows[%i] : tensor<9xi32>
  return %x : i32
}

// -----

// Calls that depend on the iteration stay, and so do those of loops that may have none.

// CHECK-LABEL: func.func @stay
// CHECK:         scf.for %[[K:[a-z0-9]+]] = %
// CHECK:           "xgpu.pure_call"(%[[K]]) {callee = @square}
// CHECK:         scf.for
// CHECK:           "xgpu.pure_call"(%{{.*}}) {callee = @square}
// CHECK:         return
func.func @stay(%n: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %c0) -> (index) {
    %x = "xgpu.pure_call"(%k) {callee = @square} : (index) -> index
    %s = arith.addi %a, %x : index
    scf.yield %s : index
  }
  %t = scf.for %k = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) {
    %x = "xgpu.pure_call"(%c4) {callee = @square} : (index) -> index
    %s = arith.addi %a, %x : index
    scf.yield %s : index
  }
  return %r, %t : index, index
}
func.func private @square(%n: index) -> index {
  %x = arith.muli %n, %n : index
  return %x : index
}
