// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @parity(%0: !llvm.ptr<3>, %1: i1) {
  // expected-error @+1 {{'xgpu.mbarrier_wait' operand 'parity': expected i32, got i1}}
  "xgpu.mbarrier_wait"(%0, %1) : (!llvm.ptr<3>, i1) -> ()
  return
}
