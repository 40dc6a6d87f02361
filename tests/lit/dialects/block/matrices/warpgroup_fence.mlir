// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.warpgroup_fence"() : () -> ()
func.func @f() {
  "xgpu.warpgroup_fence"() : () -> ()
  return
}
