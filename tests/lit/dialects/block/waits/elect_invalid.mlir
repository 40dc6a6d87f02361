// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @type() {
  // expected-error @+1 {{'xgpu.elect' result 'elected': expected i1, got i32}}
  %r = "xgpu.elect"() : () -> i32
  return
}
