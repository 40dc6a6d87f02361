// RUN: xgpu-opt %s -p inline | FileCheck %s

// A combiner stays a function, with its own callees inlined. Calls in the region of an atomic update are inlined too.

// CHECK-LABEL: func.func @k
// CHECK-NEXT:    %[[R:.*]] = "xgpu.shuffle_reduce"(%arg0) {combiner = @add, distance = 1 : i64} : (f32) -> f32
// CHECK-NEXT:    "xgpu.atomic_rmw"(%arg1, %arg2) ({
// CHECK-NEXT:    ^bb0(%[[OLD:.*]]: f32):
// CHECK-NEXT:      %[[NEW:.*]] = arith.addf %[[OLD]], %[[R]] : f32
// CHECK-NEXT:      "xgpu.yield"(%[[NEW]])
// CHECK:       func.func private @add(%[[X:.*]]: f32, %[[Y:.*]]: f32) -> f32 {
// CHECK-NEXT:    %[[Z:.*]] = arith.addf %[[X]], %[[Y]] : f32
// CHECK-NEXT:    return %[[Z]]
// CHECK-NOT:   func.func
func.func @k(%x: f32, %t: tensor<8xf32>, %i: index) -> tensor<8xf32> {
  %r = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 1 : i64} : (f32) -> f32
  %u = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: f32):
    %new = "xgpu.pure_call"(%old, %r) {callee = @sum} : (f32, f32) -> f32
    "xgpu.yield"(%new) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return %u : tensor<8xf32>
}

func.func private @add(%x: f32, %y: f32) -> f32 {
  %0 = "xgpu.pure_call"(%x, %y) {callee = @sum} : (f32, f32) -> f32
  return %0 : f32
}

func.func private @sum(%x: f32, %y: f32) -> f32 {
  %0 = arith.addf %x, %y : f32
  return %0 : f32
}
