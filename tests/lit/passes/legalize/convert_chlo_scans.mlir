// RUN: xgpu-opt %s -p convert-chlo-scans --split-input-file | FileCheck %s

// An associative scan, and its last element.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg2, %arg1 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<f32>
// CHECK-NEXT:    }) {dimension = 0 : i64, reverse = false} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[B]], %[[D]] : tensor<8xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.slice %[[E]] [7:8] : (tensor<8xf32>) -> tensor<1xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.reshape %[[F]] : (tensor<1xf32>) -> tensor<f32>
// CHECK-NEXT:    return %[[E]], %[[G]] : tensor<8xf32>, tensor<f32>
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0, %last = "chlo.scan"(%x, %zero) <{dimension = 0 : i64, is_associative = true, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
  return %0, %last : tensor<8xf32>, tensor<f32>
}

// -----

// One that does not say so stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]]:2 = chlo.scan(%arg0) inits (%[[A]]) dimension=0  {
// CHECK-NEXT:    ^bb0(%input: tensor<f32>, %carry: tensor<f32>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %input, %carry : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]], %[[C]] : tensor<f32>, tensor<f32>
// CHECK-NEXT:    } : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
// CHECK-NEXT:    return %[[B]]#0, %[[B]]#1 : tensor<8xf32>, tensor<f32>
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0, %last = "chlo.scan"(%x, %zero) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
  return %0, %last : tensor<8xf32>, tensor<f32>
}
