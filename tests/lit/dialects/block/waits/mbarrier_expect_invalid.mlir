// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @bytes(%0: !llvm.ptr<3>, %1: i64) {
  // expected-error @+1 {{'xgpu.mbarrier_expect' operand 'bytes': expected i32, got i64}}
  "xgpu.mbarrier_expect"(%0, %1) : (!llvm.ptr<3>, i64) -> ()
  return
}
