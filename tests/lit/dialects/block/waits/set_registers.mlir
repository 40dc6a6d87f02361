// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.set_registers"() {count = 232 : i64, more = true} : () -> ()
func.func @f() {
  "xgpu.set_registers"() {count = 232 : i64, more = true} : () -> ()
  return
}
