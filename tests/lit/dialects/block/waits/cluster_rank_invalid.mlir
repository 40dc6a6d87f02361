// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @type() {
  // expected-error @+1 {{'xgpu.cluster_rank' result 'rank': expected i32, got index}}
  %r = "xgpu.cluster_rank"() : () -> index
  return
}
