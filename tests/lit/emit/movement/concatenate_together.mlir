// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Operands of one shape that have something in common are computed by one function, and stored by one loop.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.emitter = "concatenate"
// CHECK: "xgpu.loop"
// CHECK: %[[A:.*]]:2 = "xgpu.pure_call"(%arg0, %arg1, %arg2, %[[I:[a-z0-9]+]], %[[J:[a-z0-9]+]]) {callee = @fusion_0__operand_0_1__root}
// CHECK: %[[R:.*]] = "xgpu.pure_call"(%arg0, %arg1, %arg2, %[[I]], %[[K:[a-z0-9]+]], %[[A]]#0) {callee = @fusion_0__epilogue__root}
// CHECK: tensor.insert %[[R]] into {{.*}}[%[[I]], %[[K]]]
// CHECK: %[[S:.*]] = "xgpu.pure_call"(%arg0, %arg1, %arg2, %[[I]], %[[L:[a-z0-9]+]], %[[A]]#1) {callee = @fusion_0__epilogue__root}
// CHECK: tensor.insert %[[S]] into {{.*}}[%[[I]], %[[L]]]
// CHECK-NOT: "xgpu.loop"

// CHECK-LABEL: func.func private @fusion_0__operand_0_1__root
// CHECK: arith.mulf
// CHECK-NOT: arith.mulf
func.func @main(%x: tensor<33x8xf32>, %y: tensor<33x8xf32>, %bias: tensor<16xf32>) -> tensor<33x16xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<33x8xf32>
  %1 = stablehlo.concatenate %0, %y, dim = 1 : (tensor<33x8xf32>, tensor<33x8xf32>) -> tensor<33x16xf32>
  %2 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<16xf32>) -> tensor<33x16xf32>
  %3 = stablehlo.add %1, %2 : tensor<33x16xf32>
  return %3 : tensor<33x16xf32>
}
