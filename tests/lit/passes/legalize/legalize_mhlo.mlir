// RUN: xgpu-opt %s -p legalize-mhlo | FileCheck %s

// Operations that StableHLO has too.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.add %arg0, %arg0 : tensor<4xf32>
// CHECK-NEXT:    return %[[A]] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "mhlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
