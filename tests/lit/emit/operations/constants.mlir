// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A splat is a scalar wherever it is read; other constants are tensors. Unsigned types become signless.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: -> (i8, i8)
// CHECK-DAG: %[[TABLE:.*]] = arith.constant dense<[1, -1, 3]> : tensor<3xi8>
// CHECK-DAG: arith.constant 7 : i8
// CHECK-DAG: tensor.extract %[[TABLE]]
func.func @main() -> (tensor<3xui8>, tensor<3xui8>) {
  %0 = stablehlo.constant dense<[1, 255, 3]> : tensor<3xui8>
  %1 = stablehlo.constant dense<7> : tensor<3xui8>
  %2 = stablehlo.reverse %0, dims = [0] : tensor<3xui8>
  %3 = stablehlo.add %2, %1 : tensor<3xui8>
  return %3, %1 : tensor<3xui8>, tensor<3xui8>
}
