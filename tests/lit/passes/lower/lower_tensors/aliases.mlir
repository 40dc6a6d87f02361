// RUN: xgpu-opt %s -p lower-tensors | FileCheck %s

// An input whose memory is an output's stays a parameter, of which LLVM may not think that nothing else points there.
// CHECK-LABEL: func.func @k
// CHECK-SAME:    (%arg0: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64, llvm.readonly}
// CHECK-SAME:    %arg1: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME:    %arg2: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64, llvm.noalias}
// CHECK-SAME:    xgpu.aliases = array<i64: 0>
func.func @k(%a: tensor<8xf32>, %b: tensor<8xf32>, %o: tensor<8xf32>, %i: index) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 2 : i64, xgpu.aliases = array<i64: 0>} {
  %x = tensor.extract %b[%i] : tensor<8xf32>
  %r = tensor.insert %x into %o[%i] : tensor<8xf32>
  return %r : tensor<8xf32>
}
