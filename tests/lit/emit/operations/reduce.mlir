// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Of a few elements: a loop over the reduced dimension wherever the result is read; its body evaluates the operand, then the combiner.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index
// CHECK: %[[INIT:.*]] = arith.constant 0.0
// CHECK: %[[SUM:.*]] = "xgpu.loop"(%[[I]], %[[INIT]])
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[R:[a-z0-9]+]]: index, %[[C:[a-z0-9]+]]: index, %[[PARTIAL:[a-z0-9]+]]: f32):
// CHECK: %[[X:.*]] = tensor.extract %arg0[%[[R]], %[[C]]]
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[PARTIAL]], %[[SQUARE]]
// CHECK: "xgpu.yield"(%[[NEXT]])
// CHECK: d0 in [0, 7], s0 in [0, 3]
// CHECK: return %[[SUM]]
func.func @main(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<8x4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
