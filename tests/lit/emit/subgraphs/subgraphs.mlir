// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A value read at two indices is a function of its own, called twice and written once.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index {{.*}}, %[[J:[a-z0-9]+]]: index
// CHECK-DAG: "xgpu.pure_call"(%arg0, %[[I]], %[[J]]) {callee = @fusion_0__exponential_1}
// CHECK-DAG: "xgpu.pure_call"(%arg0, %[[J]], %[[I]]) {callee = @fusion_0__exponential_1}
// CHECK: arith.addf
// CHECK-LABEL: func.func private @fusion_0__exponential_1
// CHECK: math.exp
// CHECK-NOT: math.exp
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.exponential %x : tensor<8x8xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
