// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @space(%0: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.mbarrier_arrive' operand 'barrier': expected !llvm.ptr<3>, a pointer to shared memory, got !llvm.ptr<1>}}
  "xgpu.mbarrier_arrive"(%0) : (!llvm.ptr<1>) -> ()
  return
}
