// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.cluster_rank"() : () -> i32
func.func @f() {
  %r = "xgpu.cluster_rank"() : () -> i32
  return
}
