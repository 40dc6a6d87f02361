// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The operand is read only where the map's constraints hold; elsewhere it is the padding value.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index
// CHECK: %[[IN:[0-9]+]] = "xgpu.in_domain"(%[[I]]) {map = #xgpu.map<(d0) -> (), d0 in [0, 18], {{.*}}>}
// CHECK: scf.if %[[IN]] -> (f32)
// CHECK: "xgpu.apply_indexing"(%[[I]]) {map = #xgpu.map<(d0) -> ((d0 - 1) floordiv 2)
// CHECK: tensor.extract %arg0
// CHECK: else
// CHECK: tensor.extract %arg1[]
func.func @main(%x: tensor<8xf32>, %value: tensor<f32>) -> tensor<19xf32> {
  %0 = stablehlo.pad %x, %value, low = [1], high = [3], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<19xf32>
  return %0 : tensor<19xf32>
}
