// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.bulk_load"(%arg0, %arg1, %arg2, %arg3) : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
func.func @f(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32, %3: !llvm.ptr<3>) {
  "xgpu.bulk_load"(%0, %1, %2, %3) : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
  return
}
