// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.shuffle"(%arg0, %arg1, %arg2) : (index, f32, i64) -> (f32, i64)
func.func @f(%lane: index, %x: f32, %i: i64) -> (f32, i64) {
  %0:2 = "xgpu.shuffle"(%lane, %x, %i) : (index, f32, i64) -> (f32, i64)
  return %0#0, %0#1 : f32, i64
}
