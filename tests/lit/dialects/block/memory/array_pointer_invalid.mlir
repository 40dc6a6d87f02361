// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_array(%array: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.array_pointer' operand 'array': expected a tensor of static shape, got !llvm.ptr<1>}}
  %0 = "xgpu.array_pointer"(%array) : (!llvm.ptr<1>) -> !llvm.ptr<1>
  return
}

// -----

func.func @elsewhere(%array: tensor<64xbf16>) {
  // expected-error @+1 {{result 'address': expected !llvm.ptr<1>, a pointer to global memory, got !llvm.ptr<3>}}
  %0 = "xgpu.array_pointer"(%array) : (tensor<64xbf16>) -> !llvm.ptr<3>
  return
}
