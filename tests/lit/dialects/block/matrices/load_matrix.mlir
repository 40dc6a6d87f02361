// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.load_matrix"(%arg0) {transposed = false} : (!llvm.ptr<3>) -> vector<4xi32>
func.func @f0(%0: !llvm.ptr<3>) {
  %r = "xgpu.load_matrix"(%0) {transposed = false} : (!llvm.ptr<3>) -> vector<4xi32>
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.load_matrix"(%arg0) {transposed = true} : (!llvm.ptr<3>) -> vector<1xi32>
func.func @f1(%0: !llvm.ptr<3>) {
  %r = "xgpu.load_matrix"(%0) {transposed = true} : (!llvm.ptr<3>) -> vector<1xi32>
  return
}
