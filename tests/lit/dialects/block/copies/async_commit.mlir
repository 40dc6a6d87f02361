// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.async_commit"() : () -> ()
func.func @f() {
  "xgpu.async_commit"() : () -> ()
  return
}
