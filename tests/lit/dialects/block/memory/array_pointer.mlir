// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.array_pointer"(%arg0) : (tensor<64x64xbf16>) -> !llvm.ptr<1>
func.func @f(%array: tensor<64x64xbf16>) {
  %0 = "xgpu.array_pointer"(%array) : (tensor<64x64xbf16>) -> !llvm.ptr<1>
  return
}
