// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_rank(%0: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.mbarrier_arrive_remote' expected 2 operands, got 1}}
  "xgpu.mbarrier_arrive_remote"(%0) : (!llvm.ptr<3>) -> ()
  return
}
