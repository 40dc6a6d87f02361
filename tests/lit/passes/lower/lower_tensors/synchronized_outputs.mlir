// RUN: xgpu-opt %s -p lower-tensors | FileCheck %s

// Other threads of the block write what is read after the barrier: the output's pointer is not the only one to it.
// CHECK-LABEL: func.func @synchronized
// CHECK-SAME:    (%[[IN:.*]]: !llvm.ptr<1> {{{.*}}llvm.noalias, llvm.readonly}, %[[OUT:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64})
// CHECK:         llvm.store
// CHECK:         gpu.barrier
// CHECK:         llvm.load
// CHECK-NOT:     invariant
// CHECK:         llvm.store
func.func @synchronized(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  %c1 = arith.constant 1 : index
  %i = gpu.thread_id x upper_bound 7
  %j = arith.addi %i, %c1 : index
  %x = tensor.extract %a[%i] : tensor<8xf32>
  %0 = tensor.insert %x into %b[%i] : tensor<8xf32>
  %1 = "xgpu.sync_threads"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %y = tensor.extract %1[%j] : tensor<8xf32>
  %2 = tensor.insert %y into %1[%i] : tensor<8xf32>
  return %2 : tensor<8xf32>
}
