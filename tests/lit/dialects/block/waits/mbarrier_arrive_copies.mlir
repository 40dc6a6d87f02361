// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.mbarrier_arrive_copies"(%arg0) : (!llvm.ptr<3>) -> ()
func.func @f(%0: !llvm.ptr<3>) {
  "xgpu.mbarrier_arrive_copies"(%0) : (!llvm.ptr<3>) -> ()
  return
}
