// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @space(%0: !llvm.ptr<3>) {
  // expected-error @+1 {{'xgpu.acquire_tensor_map' operand 'map': expected !llvm.ptr<1>, a pointer to global memory, got !llvm.ptr<3>}}
  "xgpu.acquire_tensor_map"(%0) : (!llvm.ptr<3>) -> ()
  return
}
