// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @spaces(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32) {
  // expected-error @+1 {{'xgpu.bulk_store' operand 'to': expected !llvm.ptr<1>, a pointer to global memory, got !llvm.ptr<3>}}
  "xgpu.bulk_store"(%0, %1, %2) : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  return
}
