// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @three(%0: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.load_matrix' expected a fragment of 1, 2 or 4 i32, got vector<3xi32>}}
  %r = "xgpu.load_matrix"(%0) {transposed = false} : (!llvm.ptr<3>) -> vector<3xi32>
  return
}

// -----

func.func @scalar(%0: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.load_matrix' result 'fragment': expected a vector of one dimension, got i32}}
  %r = "xgpu.load_matrix"(%0) {transposed = false} : (!llvm.ptr<3>) -> i32
  return
}
