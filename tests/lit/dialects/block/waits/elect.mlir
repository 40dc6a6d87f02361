// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.elect"() : () -> i1
func.func @f() {
  %r = "xgpu.elect"() : () -> i1
  return
}
