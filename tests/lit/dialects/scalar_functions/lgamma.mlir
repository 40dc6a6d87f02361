// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.lgamma"(%arg0) : (f64) -> f64
func.func @f(%x: f64) -> f64 {
  %0 = "xgpu.lgamma"(%x) : (f64) -> f64
  return %0 : f64
}
