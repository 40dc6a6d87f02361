// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_coordinate(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.tensor_load' expected 1 to 5 coordinates, got 0}}
  "xgpu.tensor_load"(%0, %1, %2) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>) -> ()
  return
}

// -----

func.func @coordinate(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>, %3: i64) {
  // expected-error @+1 {{'xgpu.tensor_load' operand 'coordinates': expected i32, got i64}}
  "xgpu.tensor_load"(%0, %1, %2, %3) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i64) -> ()
  return
}
