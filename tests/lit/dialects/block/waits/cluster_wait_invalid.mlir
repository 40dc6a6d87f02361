// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @operand(%0: i32) {
  // expected-error @+1 {{'xgpu.cluster_wait' expected 0 operands, got 1}}
  "xgpu.cluster_wait"(%0) : (i32) -> ()
  return
}
