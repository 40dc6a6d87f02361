// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @type(%0: vector<4xf32>, %1: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.store_matrix' expected a fragment of 1, 2 or 4 i32, got vector<4xf32>}}
  "xgpu.store_matrix"(%0, %1) {transposed = false} : (vector<4xf32>, !llvm.ptr<3>) -> ()
  return
}

// -----

func.func @transposed(%0: vector<4xi32>, %1: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.store_matrix' expected attribute 'transposed' (true or false)}}
  "xgpu.store_matrix"(%0, %1) : (vector<4xi32>, !llvm.ptr<3>) -> ()
  return
}
