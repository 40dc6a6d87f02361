// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=FUSIONS
// RUN: xgpu compile %s --emit emitted | FileCheck %s

// FUSIONS: xgpu.emitter = "concatenate"
// FUSIONS: stablehlo.concatenate {{.*}} {xgpu.hero}

// A loop for each operand: its last index in the result follows that in the operand.
// CHECK-LABEL: func.func @fusion_0(
// CHECK: "xgpu.loop"
// CHECK: %[[A:.*]] = "xgpu.pure_call"(%arg0, %arg1, %arg2, %arg3, %[[I:[a-z0-9]+]], %[[J:[a-z0-9]+]]) {callee = @fusion_0__operand_0__root}
// CHECK: %[[R:.*]] = "xgpu.pure_call"(%arg0, %arg1, %arg2, %arg3, %[[I]], %[[K:[a-z0-9]+]], %[[A]]) {callee = @fusion_0__epilogue__root}
// CHECK: tensor.insert %[[R]] into {{.*}}[%[[I]], %[[K]]]
// CHECK: d1 * 16 + d0 floordiv 8, d0 mod 8, d0 mod 8), {{.*}} d0 + d1 * 128 in [0, 263]
// CHECK: "xgpu.loop"
// CHECK: callee = @fusion_0__operand_1__root
// CHECK: callee = @fusion_0__epilogue__root
// CHECK: d1 * 16 + d0 floordiv 8, d0 mod 8, d0 mod 8 + 8)

// What the operands are computed from is in the functions of the operands, what follows in that of the epilogue.
// CHECK-LABEL: func.func private @fusion_0__operand_0__root
// CHECK: arith.mulf
// CHECK-LABEL: func.func private @fusion_0__operand_1__root
// CHECK: tensor.extract %arg2
// CHECK-LABEL: func.func private @fusion_0__epilogue__root
// CHECK-SAME: %[[HERO:[a-z0-9]+]]: f32) -> f32
// CHECK: arith.addf %[[HERO]]
func.func @main(%x: tensor<33x8xf32>, %y: tensor<33x8xf32>, %z: tensor<33x8xf32>, %bias: tensor<16xf32>) -> tensor<33x16xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<33x8xf32>
  %1 = stablehlo.concatenate %0, %z, dim = 1 : (tensor<33x8xf32>, tensor<33x8xf32>) -> tensor<33x16xf32>
  %2 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<16xf32>) -> tensor<33x16xf32>
  %3 = stablehlo.add %1, %2 : tensor<33x16xf32>
  return %3 : tensor<33x16xf32>
}
