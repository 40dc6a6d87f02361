// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.bulk_commit"() : () -> ()
func.func @f() {
  "xgpu.bulk_commit"() : () -> ()
  return
}
