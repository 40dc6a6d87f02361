// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @pending() {
  // expected-error @+1 {{'xgpu.warpgroup_wait' attribute 'pending': expected 0 to 7, got 8}}
  "xgpu.warpgroup_wait"() {pending = 8 : i64} : () -> ()
  return
}

// -----

func.func @types(%0: vector<64xf32>) {
  // expected-error @+1 {{'xgpu.warpgroup_wait' expected results of the operands' types (vector<64xf32>), got (vector<32xf32>)}}
  %r = "xgpu.warpgroup_wait"(%0) {pending = 0 : i64} : (vector<64xf32>) -> vector<32xf32>
  return
}
