// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK: "xgpu.acquire_tensor_map"(%arg0) : (!llvm.ptr<1>) -> ()
func.func @f(%0: !llvm.ptr<1>) {
  "xgpu.acquire_tensor_map"(%0) : (!llvm.ptr<1>) -> ()
  return
}
