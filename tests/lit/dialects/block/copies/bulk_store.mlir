// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.bulk_store"(%arg0, %arg1, %arg2) : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
func.func @f(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: i32) {
  "xgpu.bulk_store"(%0, %1, %2) : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
  return
}
