// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.shuffle_reduce"(%arg0, %arg1) {combiner = @later, distance = 16 : i64} : (f32, i32) -> (f32, i32)
func.func @f(%x: f32, %i: i32) -> (f32, i32) {
  %0:2 = "xgpu.shuffle_reduce"(%x, %i) {combiner = @later, distance = 16 : i64} : (f32, i32) -> (f32, i32)
  return %0#0, %0#1 : f32, i32
}

func.func private @later(%x: f32, %i: i32, %y: f32, %j: i32) -> (f32, i32) {
  return %y, %j : f32, i32
}
