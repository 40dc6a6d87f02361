// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @count() {
  // expected-error @+1 {{'xgpu.set_registers' attribute 'count': expected a multiple of 8 from 24 to 256, got 100}}
  "xgpu.set_registers"() {count = 100 : i64, more = true} : () -> ()
  return
}
