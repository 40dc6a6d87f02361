// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.tensor_load_multicast"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32) -> ()
func.func @f(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>, %3: i32, %4: i32, %5: i32) {
  "xgpu.tensor_load_multicast"(%0, %1, %2, %3, %4, %5) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32) -> ()
  return
}
