// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @spaces(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32) {
  // expected-error @+1 {{'xgpu.tensor_store' operand 'map': expected !llvm.ptr<1>, a pointer to global memory, got !llvm.ptr<3>}}
  "xgpu.tensor_store"(%0, %1, %2) : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  return
}

// -----

func.func @no_coordinate(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.tensor_store' expected 1 to 5 coordinates, got 0}}
  "xgpu.tensor_store"(%0, %1) : (!llvm.ptr<1>, !llvm.ptr<3>) -> ()
  return
}
