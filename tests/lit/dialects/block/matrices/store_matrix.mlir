// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.store_matrix"(%arg0, %arg1) {transposed = false} : (vector<4xi32>, !llvm.ptr<3>) -> ()
func.func @f0(%0: vector<4xi32>, %1: !llvm.ptr<3>) {
  "xgpu.store_matrix"(%0, %1) {transposed = false} : (vector<4xi32>, !llvm.ptr<3>) -> ()
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.store_matrix"(%arg0, %arg1) {transposed = true} : (vector<2xi32>, !llvm.ptr<3>) -> ()
func.func @f1(%0: vector<2xi32>, %1: !llvm.ptr<3>) {
  "xgpu.store_matrix"(%0, %1) {transposed = true} : (vector<2xi32>, !llvm.ptr<3>) -> ()
  return
}
