// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @operand(%0: vector<64xf32>) {
  // expected-error @+1 {{'xgpu.warpgroup_fence' expected 0 operands, got 1}}
  "xgpu.warpgroup_fence"(%0) : (vector<64xf32>) -> ()
  return
}
