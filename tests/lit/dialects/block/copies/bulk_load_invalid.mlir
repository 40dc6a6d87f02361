// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_barrier(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32) {
  // expected-error @+1 {{'xgpu.bulk_load' expected 4 operands, got 3}}
  "xgpu.bulk_load"(%0, %1, %2) : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  return
}

// -----

func.func @bytes(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i64, %3: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.bulk_load' operand 'bytes': expected i32, got i64}}
  "xgpu.bulk_load"(%0, %1, %2, %3) : (!llvm.ptr<3>, !llvm.ptr<1>, i64, !llvm.ptr<3>) -> ()
  return
}
