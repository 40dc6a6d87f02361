// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.bessel_i1e"(%arg0) : (f16) -> f16
func.func @f(%x: f16) -> f16 {
  %0 = "xgpu.bessel_i1e"(%x) : (f16) -> f16
  return %0 : f16
}
