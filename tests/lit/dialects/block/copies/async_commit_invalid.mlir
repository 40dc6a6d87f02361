// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @operand(%0: i32) {
  // expected-error @+1 {{'xgpu.async_commit' expected 0 operands, got 1}}
  "xgpu.async_commit"(%0) : (i32) -> ()
  return
}
