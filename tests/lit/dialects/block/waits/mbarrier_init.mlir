// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.mbarrier_init"(%arg0) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
func.func @f(%0: !llvm.ptr<3>) {
  "xgpu.mbarrier_init"(%0) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
  return
}
