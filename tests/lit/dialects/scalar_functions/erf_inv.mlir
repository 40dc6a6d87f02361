// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.erf_inv"(%arg0) : (bf16) -> bf16
func.func @f(%x: bf16) -> bf16 {
  %0 = "xgpu.erf_inv"(%x) : (bf16) -> bf16
  return %0 : bf16
}
