// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The update where the index lies in its window, whose start is clamped so that it fits; else the operand. The slice is
// too large a part of the whole to be updated in place.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index
// CHECK: %[[START:.*]] = tensor.extract %arg2[]
// CHECK: arith.maxsi %[[START]], %c0
// CHECK: arith.minsi %{{.*}}, %c4
// CHECK: %[[S:[0-9]+]] = arith.index_cast
// CHECK: %[[IN:[0-9]+]] = "xgpu.in_domain"(%[[I]], %[[S]])
// CHECK: scf.if %[[IN]]
// CHECK: tensor.extract %arg1
// CHECK: else
// CHECK: tensor.extract %arg0[%[[I]]]
func.func @main(%x: tensor<10xf32>, %update: tensor<6xf32>, %start: tensor<i32>) -> tensor<10xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %update, %start : (tensor<10xf32>, tensor<6xf32>, tensor<i32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}
