// RUN: xgpu-opt %s -p replace-empty-values | FileCheck %s

// What has no elements is a constant, a complex one of two parts.

// CHECK-LABEL: func.func @main(%arg0: tensor<0xf32>, %arg1: tensor<2x0xcomplex<f32>>) -> (tensor<0xf32>, tensor<2x0xcomplex<f32>>) {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<> : tensor<0xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.add %arg0, %arg0 : tensor<0xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<> : tensor<2x0xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.complex %[[C]], %[[C]] : tensor<2x0xcomplex<f32>>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %arg1, %arg1 : tensor<2x0xcomplex<f32>>
// CHECK-NEXT:    return %[[A]], %[[D]] : tensor<0xf32>, tensor<2x0xcomplex<f32>>
func.func @main(%x: tensor<0xf32>, %z: tensor<2x0xcomplex<f32>>) -> (tensor<0xf32>, tensor<2x0xcomplex<f32>>) {
  %0 = stablehlo.add %x, %x : tensor<0xf32>
  %1 = stablehlo.add %z, %z : tensor<2x0xcomplex<f32>>
  return %0, %1 : tensor<0xf32>, tensor<2x0xcomplex<f32>>
}
