// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @nothing() {
  // expected-error @+1 {{'xgpu.mbarrier_arrive_copies' expected 1 operands, got 0}}
  "xgpu.mbarrier_arrive_copies"() : () -> ()
  return
}
