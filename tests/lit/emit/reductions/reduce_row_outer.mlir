// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Two reduced dimensions with a kept one between them: a loop over the outer one around that along the row.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "reduce_row"
// CHECK: %[[SUM:.*]] = "xgpu.loop"
// CHECK-NEXT: ^bb0(%[[OUTER:[a-z0-9]+]]: index, %[[UNROLLED:[a-z0-9]+]]: index, %[[PARTIAL:[a-z0-9]+]]: f32):
// CHECK-NEXT: "xgpu.loop"(%{{.*}}, %{{.*}}, %[[OUTER]], %[[UNROLLED]], %[[PARTIAL]])
// CHECK: "xgpu.pure_call"(%arg0, %{{.*}}, %{{.*}}, %{{.*}}) {callee = @fusion_0__prologue__root}
// CHECK: "xgpu.shuffle_reduce"(%[[SUM]])
func.func @main(%x: tensor<10x2000x256xf32>) -> tensor<2000xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<10x2000x256xf32>, tensor<f32>) -> tensor<2000xf32>
  return %0 : tensor<2000xf32>
}
