// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.allocate_shared"() : () -> tensor<32x33xbf16>
// CHECK-NEXT:    "xgpu.allocate_shared"() : () -> tensor<f32>
func.func @f() {
  %0 = "xgpu.allocate_shared"() : () -> tensor<32x33xbf16>
  %1 = "xgpu.allocate_shared"() : () -> tensor<f32>
  return
}
