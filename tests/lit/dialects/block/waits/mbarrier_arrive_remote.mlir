// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.mbarrier_arrive_remote"(%arg0, %arg1) : (!llvm.ptr<3>, i32) -> ()
func.func @f(%0: !llvm.ptr<3>, %1: i32) {
  "xgpu.mbarrier_arrive_remote"(%0, %1) : (!llvm.ptr<3>, i32) -> ()
  return
}
