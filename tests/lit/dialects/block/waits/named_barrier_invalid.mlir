// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @threads(%0: i32) {
  // expected-error @+1 {{'xgpu.named_barrier' attribute 'threads': expected a multiple of 32 from 32 to 1024, got 48}}
  "xgpu.named_barrier"(%0) {threads = 48 : i64, wait = true} : (i32) -> ()
  return
}

// -----

func.func @wait(%0: i32) {
  // expected-error @+1 {{'xgpu.named_barrier' attribute 'wait': expected true or false, got 1 : i64}}
  "xgpu.named_barrier"(%0) {threads = 32 : i64, wait = 1 : i64} : (i32) -> ()
  return
}
