// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @outside(%x: f32) {
  // expected-error @+1 {{'xgpu.yield' expected to be inside an xgpu operation with a region, got 'func.func'}}
  "xgpu.yield"(%x) : (f32) -> ()
  return
}
