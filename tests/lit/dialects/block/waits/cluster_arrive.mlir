// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.cluster_arrive"() : () -> ()
func.func @f() {
  "xgpu.cluster_arrive"() : () -> ()
  return
}
