// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @count(%0: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.mbarrier_init' attribute 'count': expected 1 to 1048575, got 0}}
  "xgpu.mbarrier_init"(%0) {count = 0 : i64} : (!llvm.ptr<3>) -> ()
  return
}

// -----

func.func @space(%0: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.mbarrier_init' operand 'barrier': expected !llvm.ptr<3>, a pointer to shared memory, got !llvm.ptr<1>}}
  "xgpu.mbarrier_init"(%0) {count = 1 : i64} : (!llvm.ptr<1>) -> ()
  return
}
