// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.named_barrier"(%arg0) {threads = 128 : i64, wait = true} : (i32) -> ()
func.func @f0(%0: i32) {
  "xgpu.named_barrier"(%0) {threads = 128 : i64, wait = true} : (i32) -> ()
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.named_barrier"(%arg0) {threads = 256 : i64, wait = false} : (i32) -> ()
func.func @f1(%0: i32) {
  "xgpu.named_barrier"(%0) {threads = 256 : i64, wait = false} : (i32) -> ()
  return
}
