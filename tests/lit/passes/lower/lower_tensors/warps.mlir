// RUN: xgpu-opt %s -p lower-tensors | FileCheck %s

// A barrier of warps stays one; what comes after it reads memory anew.

// CHECK-LABEL: func.func @k
// CHECK:         llvm.store
// CHECK:         "xgpu.sync_warp"() : () -> ()
// CHECK-NOT:     gpu.barrier
// CHECK:         llvm.load
func.func @k(%i: index, %j: index, %x: f32) -> f32 attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<64xf32>
  %t1 = tensor.insert %x into %t[%i] : tensor<64xf32>
  %s = "xgpu.sync_warp"(%t1) : (tensor<64xf32>) -> tensor<64xf32>
  %y = tensor.extract %s[%j] : tensor<64xf32>
  return %y : f32
}
