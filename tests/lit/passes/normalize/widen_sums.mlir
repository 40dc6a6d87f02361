// RUN: xgpu-opt %s -p widen-sums --split-input-file | FileCheck %s

// A sum of bf16 is one of f32, rounded at the end.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xbf16>) -> tensor<bf16> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.convert %arg0 : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convert %[[A]] : (tensor<bf16>) -> tensor<f32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reduce(%[[B]] init: %[[C]]) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.convert %[[D]] : (tensor<f32>) -> tensor<bf16>
// CHECK-NEXT:    return %[[E]] : tensor<bf16>
func.func @main(%x: tensor<8xbf16>) -> tensor<bf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xbf16>, tensor<bf16>) -> tensor<bf16>
  return %0 : tensor<bf16>
}

// -----

// A maximum picks an element and stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xbf16>) -> tensor<bf16> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reduce(%arg0 init: %[[A]]) applies stablehlo.maximum across dimensions = [0] : (tensor<8xbf16>, tensor<bf16>) -> tensor<bf16>
// CHECK-NEXT:    return %[[B]] : tensor<bf16>
func.func @main(%x: tensor<8xbf16>) -> tensor<bf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<8xbf16>, tensor<bf16>) -> tensor<bf16>
  return %0 : tensor<bf16>
}
