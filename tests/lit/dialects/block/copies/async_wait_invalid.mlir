// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @negative() {
  // expected-error @+1 {{'xgpu.async_wait' attribute 'pending': expected a number from 0, got -1}}
  "xgpu.async_wait"() {pending = -1 : i64} : () -> ()
  return
}

// -----

func.func @nothing() {
  // expected-error @+1 {{'xgpu.async_wait' expected attribute 'pending' (an integer of type i64)}}
  "xgpu.async_wait"() : () -> ()
  return
}
