// RUN: xgpu-opt %s -p slice-parts | FileCheck %s

// What lies in one part is a slice of that, or the part; what lies in two stays as it is.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<6xf32>) -> (tensor<2xf32>, tensor<6xf32>, tensor<3xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<2xf32>, tensor<6xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.slice %arg1 [1:3] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[A]] [1:4] : (tensor<8xf32>) -> tensor<3xf32>
// CHECK-NEXT:    return %[[B]], %arg1, %[[C]] : tensor<2xf32>, tensor<6xf32>, tensor<3xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<6xf32>) -> (tensor<2xf32>, tensor<6xf32>, tensor<3xf32>) {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<6xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %0 [3:5] : (tensor<8xf32>) -> tensor<2xf32>
  %2 = stablehlo.slice %0 [2:8] : (tensor<8xf32>) -> tensor<6xf32>
  %3 = stablehlo.slice %0 [1:4] : (tensor<8xf32>) -> tensor<3xf32>
  return %1, %2, %3 : tensor<2xf32>, tensor<6xf32>, tensor<3xf32>
}
