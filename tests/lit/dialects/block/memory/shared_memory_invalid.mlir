// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @none() {
  // expected-error @+1 {{'xgpu.shared_memory' attribute 'bytes': expected 1 to 1048576, got 0}}
  %0 = "xgpu.shared_memory"() {bytes = 0 : i64} : () -> !llvm.ptr<3>
  return
}

// -----

func.func @too_much() {
  // expected-error @+1 {{attribute 'bytes': expected 1 to 1048576, got 1048577}}
  %0 = "xgpu.shared_memory"() {bytes = 1048577 : i64} : () -> !llvm.ptr<3>
  return
}

// -----

func.func @elsewhere() {
  // expected-error @+1 {{result 'memory': expected !llvm.ptr<3>, a pointer to shared memory, got !llvm.ptr<1>}}
  %0 = "xgpu.shared_memory"() {bytes = 1024 : i64} : () -> !llvm.ptr<1>
  return
}
