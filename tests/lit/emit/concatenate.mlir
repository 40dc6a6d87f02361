// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The operand is found by halving, so many operands do not nest deeply.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index
// CHECK: %[[LEFT:.*]] = "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 27], d0 in [0, 10]>}
// CHECK: scf.if %[[LEFT]]
// CHECK: "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 27], d0 in [0, 3]>}
// CHECK: tensor.extract %arg0
// CHECK: tensor.extract %arg1
// CHECK: "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 27], d0 - 11 in [0, 7]>}
// CHECK: tensor.extract %arg2
// CHECK: tensor.extract %arg3
func.func @main(%a: tensor<4xf32>, %b: tensor<7xf32>, %c: tensor<8xf32>, %d: tensor<9xf32>) -> tensor<28xf32> {
  %0 = stablehlo.concatenate %a, %b, %c, %d, dim = 0 : (tensor<4xf32>, tensor<7xf32>, tensor<8xf32>, tensor<9xf32>) -> tensor<28xf32>
  return %0 : tensor<28xf32>
}
