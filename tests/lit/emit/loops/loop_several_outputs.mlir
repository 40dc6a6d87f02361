// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Results of one shape are one kernel, whose root function returns a scalar for each.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: -> (tensor<8x8xf32>, tensor<8x8xi1>)
// CHECK: %[[V:.*]]:2 = "xgpu.pure_call"({{.*}}) {callee = @fusion_0__root} : {{.*}} -> (f32, i1)
// CHECK: %[[A:.*]] = tensor.insert %[[V]]#0
// CHECK: %[[B:.*]] = tensor.insert %[[V]]#1
// CHECK: "xgpu.yield"(%[[A]], %[[B]])
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xi1>) {
  %0 = stablehlo.negate %x : tensor<8x8xf32>
  %1 = stablehlo.compare LT, %0, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xi1>
}
