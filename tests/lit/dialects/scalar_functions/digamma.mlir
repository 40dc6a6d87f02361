// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.digamma"(%arg0) : (f32) -> f32
func.func @f(%x: f32) -> f32 {
  %0 = "xgpu.digamma"(%x) : (f32) -> f32
  return %0 : f32
}
