// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %0 = "xgpu.blocks"(%arg0) ({
// CHECK-NEXT:    ^bb0(%arg1: index, %arg2: index, %arg3: tensor<64x64xf32>):
// CHECK-NEXT:      "xgpu.yield"(%arg3) : (tensor<64x64xf32>) -> ()
// CHECK-NEXT:    }) {grid = array<i64: 4, 2>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
func.func @f(%out: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = "xgpu.blocks"(%out) ({
  ^bb0(%i: index, %j: index, %array: tensor<64x64xf32>):
    "xgpu.yield"(%array) : (tensor<64x64xf32>) -> ()
  }) {grid = array<i64: 4, 2>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
