// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Long pieces are left to the loop emitter. The operand is found by halving, so many operands do not nest deeply.
// CHECK: xgpu.emitter = "loop"
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index
// CHECK: %[[LEFT:.*]] = "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 2431], d0 in [0, 1151]>}
// CHECK: scf.if %[[LEFT]]
// CHECK: "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 2431], d0 in [0, 511]>}
// CHECK: tensor.extract %arg0
// CHECK: tensor.extract %arg1
// CHECK: "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 2431], d0 - 1152 in [0, 511]>}
// CHECK: tensor.extract %arg2
// CHECK: tensor.extract %arg3
func.func @main(
    %a: tensor<512xf32>, %b: tensor<640xf32>, %c: tensor<512xf32>, %d: tensor<768xf32>
) -> tensor<2432xf32> {
  %0 = stablehlo.concatenate %a, %b, %c, %d, dim = 0
    : (tensor<512xf32>, tensor<640xf32>, tensor<512xf32>, tensor<768xf32>) -> tensor<2432xf32>
  return %0 : tensor<2432xf32>
}
