// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @negative() {
  // expected-error @+1 {{'xgpu.bulk_wait' attribute 'pending': expected a number from 0, got -1}}
  "xgpu.bulk_wait"() {pending = -1 : i64, until = "read"} : () -> ()
  return
}

// -----

func.func @until() {
  // expected-error @+1 {{'xgpu.bulk_wait' attribute 'until': expected one of "read", "done", got "written"}}
  "xgpu.bulk_wait"() {pending = 0 : i64, until = "written"} : () -> ()
  return
}
