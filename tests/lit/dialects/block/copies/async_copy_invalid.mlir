// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @size(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32) {
  // expected-error @+1 {{'xgpu.async_copy' attribute 'bytes': expected one of 4, 8, 16, got 12}}
  "xgpu.async_copy"(%0, %1, %2) {bytes = 12 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  return
}

// -----

func.func @spaces(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: i32) {
  // expected-error @+1 {{'xgpu.async_copy' operand 'to': expected !llvm.ptr<3>, a pointer to shared memory, got !llvm.ptr<1>}}
  "xgpu.async_copy"(%0, %1, %2) {bytes = 16 : i64} : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
  return
}
