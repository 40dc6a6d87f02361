// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.tensor_load"(%arg0, %arg1, %arg2, %arg3) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
func.func @f0(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>, %3: i32) {
  "xgpu.tensor_load"(%0, %1, %2, %3) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.tensor_load"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32, i32, i32) -> ()
func.func @f1(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>, %3: i32, %4: i32, %5: i32, %6: i32, %7: i32) {
  "xgpu.tensor_load"(%0, %1, %2, %3, %4, %5, %6, %7) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32, i32, i32) -> ()
  return
}
