// RUN: xgpu-opt %s -p start-from-identity --split-input-file | FileCheck %s

// Every thread starts from zero; what the sum starts from is added once.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x64xf32>, %arg1: tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reduce(%arg0 init: %[[B]]) applies stablehlo.add across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[D]], %[[C]] : tensor<8xf32>
// CHECK-NEXT:    return %[[E]] : tensor<8xf32>
func.func @main(%x: tensor<8x64xf32>, %start: tensor<f32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// It does start from zero.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x64xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reduce(%arg0 init: %[[A]]) applies stablehlo.add across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<8xf32>
func.func @main(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Of four elements, too, which threads may share.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32>, %arg1: tensor<f32>) -> tensor<8xf32>
// CHECK:         %[[A:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK:         stablehlo.add %{{.*}}, %[[A]] : tensor<8xf32>
func.func @main(%x: tensor<8x4xf32>, %start: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
