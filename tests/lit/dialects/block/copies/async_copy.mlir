// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.async_copy"(%arg0, %arg1, %arg2) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
func.func @f(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32) {
  "xgpu.async_copy"(%0, %1, %2) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  return
}
