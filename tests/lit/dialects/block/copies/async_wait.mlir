// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.async_wait"() {pending = 2 : i64} : () -> ()
func.func @f() {
  "xgpu.async_wait"() {pending = 2 : i64} : () -> ()
  return
}
