// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.bulk_wait"() {pending = 0 : i64, until = "read"} : () -> ()
func.func @f0() {
  "xgpu.bulk_wait"() {pending = 0 : i64, until = "read"} : () -> ()
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.bulk_wait"() {pending = 1 : i64, until = "done"} : () -> ()
func.func @f1() {
  "xgpu.bulk_wait"() {pending = 1 : i64, until = "done"} : () -> ()
  return
}
