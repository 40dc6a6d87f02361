// RUN: xgpu-opt %s -p split-scans --split-input-file | FileCheck %s

// What each chunk comes to, a scan of that, and the scan itself, which starts from there in each chunk.

// CHECK-LABEL: func.func @main(%arg0: tensor<1048576xf32>) -> tensor<1048576xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.slice %arg0 [0:1046528] : (tensor<1048576xf32>) -> tensor<1046528xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %[[A]] : (tensor<1046528xf32>) -> tensor<511x2048xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reduce(%[[B]] init: %[[C]]) applies stablehlo.add across dimensions = [1] : (tensor<511x2048xf32>, tensor<f32>) -> tensor<511xf32>
// CHECK-NEXT:    %[[E:.*]] = "xgpu.scan"(%[[D]]) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[F:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[F]] : tensor<f32>
// CHECK-NEXT:    }) {chunk = 511 : i64, dimension = 0 : i64, reverse = false} : (tensor<511xf32>) -> tensor<511xf32>
// CHECK-NEXT:    %[[G:.*]] = "xgpu.scan"(%arg0, %[[E]]) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[H:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[H]] : tensor<f32>
// CHECK-NEXT:    }) {chunk = 2048 : i64, dimension = 0 : i64, reverse = false} : (tensor<1048576xf32>, tensor<511xf32>) -> tensor<1048576xf32>
// CHECK-NEXT:    return %[[G]] : tensor<1048576xf32>
func.func @main(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = false, chunk = 1048576 : i64} : (tensor<1048576xf32>) -> tensor<1048576xf32>
  return %0 : tensor<1048576xf32>
}

// -----

// Short enough for one block.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096xf32>) -> tensor<4096xf32>
// CHECK-NEXT:    %[[A:.*]] = "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[B:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<f32>
// CHECK-NEXT:    }) {chunk = 4096 : i64, dimension = 0 : i64, reverse = false} : (tensor<4096xf32>) -> tensor<4096xf32>
// CHECK-NEXT:    return %[[A]] : tensor<4096xf32>
func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = false, chunk = 4096 : i64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
