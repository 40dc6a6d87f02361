// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.cluster_pointer"(%arg0, %arg1) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
func.func @f(%0: !llvm.ptr<3>, %1: i32) {
  %r = "xgpu.cluster_pointer"(%0, %1) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  return
}
