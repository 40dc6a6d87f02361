// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.mbarrier_wait"(%arg0, %arg1) : (!llvm.ptr<3>, i32) -> ()
func.func @f(%0: !llvm.ptr<3>, %1: i32) {
  "xgpu.mbarrier_wait"(%0, %1) : (!llvm.ptr<3>, i32) -> ()
  return
}
