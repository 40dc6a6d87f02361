// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @result() {
  // expected-error @+1 {{'xgpu.bulk_commit' expected 0 results, got 1}}
  %r = "xgpu.bulk_commit"() : () -> i32
  return
}
