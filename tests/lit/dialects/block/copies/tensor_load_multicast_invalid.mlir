// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @rank(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>, %3: i32, %4: i32, %5: i32, %6: i32, %7: i32, %8: i32, %9: i32) {
  // expected-error @+1 {{'xgpu.tensor_load_multicast' expected 1 to 5 coordinates, got 6}}
  "xgpu.tensor_load_multicast"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32, i32, i32, i32, i32) -> ()
  return
}

// -----

func.func @no_blocks(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.tensor_load_multicast' expected at least 4 operands, got 3}}
  "xgpu.tensor_load_multicast"(%0, %1, %2) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>) -> ()
  return
}
