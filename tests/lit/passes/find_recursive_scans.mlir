// RUN: xgpu-opt %s -p find-recursive-scans | FileCheck %s

// Two elements are one level: the first, and both combined.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:    %[[A:.*]] = "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[B:.*]] = stablehlo.maximum %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<f32>
// CHECK-NEXT:    }) {dimension = 0 : i64, reverse = false} : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.broadcast_in_dim %[[C]], dims = [] : (tensor<f32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[A]], %[[D]] : tensor<2xf32>
// CHECK-NEXT:    return %[[E]] : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %x [0:1:2] : (tensor<2xf32>) -> tensor<1xf32>
  %1 = stablehlo.slice %x [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
  %2 = stablehlo.maximum %0, %1 : tensor<1xf32>
  %3 = stablehlo.slice %x [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %4 = stablehlo.pad %3, %zero, low = [0], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %5 = stablehlo.pad %2, %zero, low = [1], high = [0], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %6 = stablehlo.add %4, %5 : tensor<2xf32>
  return %6 : tensor<2xf32>
}
