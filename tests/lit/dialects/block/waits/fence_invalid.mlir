// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @kind() {
  // expected-error @+1 {{'xgpu.fence' attribute 'kind': expected one of "async", "mbarrier_init", "cluster", got "block"}}
  "xgpu.fence"() {kind = "block"} : () -> ()
  return
}
