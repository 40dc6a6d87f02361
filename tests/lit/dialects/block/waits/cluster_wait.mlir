// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.cluster_wait"() : () -> ()
func.func @f() {
  "xgpu.cluster_wait"() : () -> ()
  return
}
