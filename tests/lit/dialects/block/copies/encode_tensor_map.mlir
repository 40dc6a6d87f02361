// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.encode_tensor_map"(%arg0, %arg1, %arg2) {box = array<i64: 128, 64>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
func.func @f(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 64>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}
