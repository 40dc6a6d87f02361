// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.logistic"(%arg0) : (bf16) -> bf16
func.func @f(%x: bf16) -> bf16 {
  %0 = "xgpu.logistic"(%x) : (bf16) -> bf16
  return %0 : bf16
}
