// RUN: xgpu-opt %s -p lower-tensors | FileCheck %s

// What a branch writes and reads itself need not leave it: nobody uses the tile afterwards.
// CHECK-LABEL: func.func @within
// CHECK:         scf.if %{{.*}} -> (f32) {
// CHECK:           llvm.store
// CHECK:           %[[Y:.*]] = llvm.load
// CHECK:           scf.yield %[[Y]] : f32
func.func @within(%b: tensor<8xf32>, %i: index, %j: index, %x: f32, %c: i1) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  %r = scf.if %c -> (f32) {
    %u = tensor.insert %x into %t[%i] : tensor<8xf32>
    %y = tensor.extract %u[%j] : tensor<8xf32>
    scf.yield %y : f32
  } else {
    scf.yield %x : f32
  }
  %o = tensor.insert %r into %b[%i] : tensor<8xf32>
  return %o : tensor<8xf32>
}
