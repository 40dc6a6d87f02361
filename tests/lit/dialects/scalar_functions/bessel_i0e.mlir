// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// Of a number, and of an array at the levels that have arrays of the program.

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.bessel_i0e"(%arg0) : (bf16) -> bf16
// CHECK-NEXT:    "xgpu.bessel_i0e"(%arg1) : (tensor<4xf64>) -> tensor<4xf64>
func.func @f(%x: bf16, %t: tensor<4xf64>) -> (bf16, tensor<4xf64>) {
  %0 = "xgpu.bessel_i0e"(%x) : (bf16) -> bf16
  %1 = "xgpu.bessel_i0e"(%t) : (tensor<4xf64>) -> tensor<4xf64>
  return %0, %1 : bf16, tensor<4xf64>
}
