// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The exponentials are stored by the kernel that sums them: the loop carries the sum and the array.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: xgpu.emitter = "reduce_row"
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %{{.*}}, %arg2)
// CHECK: %[[E:.*]]:2 = "xgpu.pure_call"(%arg0, %[[ROW:.*]], %[[COLUMN:.*]]) {callee = @fusion_0__prologue__root}
// CHECK: %[[STORED:.*]] = tensor.insert %[[E]]#1 into %{{.*}}[%[[ROW]], %[[COLUMN]]]
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[E]]#0
// CHECK: "xgpu.yield"(%[[SUM]], %[[STORED]])
// CHECK-NOT: func.func @fusion_1
func.func @main(%x: tensor<1000x96xf32>) -> (tensor<1000x96xf32>, tensor<1000xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<1000x96xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1000x96xf32>, tensor<f32>) -> tensor<1000xf32>
  return %0, %1 : tensor<1000x96xf32>, tensor<1000xf32>
}
