// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A function takes the arrays that it reads, itself or by what it calls, and no others; the roots' function takes all.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %arg0: tensor<8x8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8x8xf32>, %arg3: index
// CHECK: "xgpu.pure_call"(%arg0, %arg1, %arg4, %arg3) {callee = @fusion_0__add_1}
// CHECK-LABEL: func.func private @fusion_0__add_1
// CHECK-SAME: %arg0: tensor<8x8xf32>, %arg1: tensor<8xf32>, %arg2: index
// CHECK: "xgpu.pure_call"(%arg1, %arg2) {callee = @fusion_0__exponential_2}
// CHECK-LABEL: func.func private @fusion_0__exponential_2
// CHECK-SAME: %arg0: tensor<8xf32>, %arg1: index
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8xf32>, %z: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.exponential %y : tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<8x8xf32>
  %4 = stablehlo.add %x, %3 : tensor<8x8xf32>
  %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = stablehlo.subtract %4, %5 : tensor<8x8xf32>
  %7 = stablehlo.add %6, %z : tensor<8x8xf32>
  return %7 : tensor<8x8xf32>
}
