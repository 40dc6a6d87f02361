// RUN: xgpu-opt %s -p expand-short-scans --split-input-file | FileCheck %s

// Along the last dimension, from the last element on; combined in the scan's order.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     xgpu.scan
// CHECK:         %[[C:.*]] = stablehlo.slice %arg0 [0:64, 2:3] : (tensor<64x3xf32>) -> tensor<64x1xf32>
// CHECK:         %[[B:.*]] = stablehlo.slice %arg0 [0:64, 1:2]
// CHECK:         %[[D:.*]] = stablehlo.subtract %[[C]], %[[B]] : tensor<64x1xf32>
// CHECK:         %[[A:.*]] = stablehlo.slice %arg0 [0:64, 0:1]
// CHECK:         %[[E:.*]] = stablehlo.subtract %[[D]], %[[A]] : tensor<64x1xf32>
// CHECK:         %[[R:.*]] = stablehlo.concatenate %[[E]], %[[D]], %[[C]], dim = 1
// CHECK:         return %[[R]]
func.func @main(%x: tensor<64x3xf32>) -> tensor<64x3xf32> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {dimension = 1 : i64, reverse = true} : (tensor<64x3xf32>) -> tensor<64x3xf32>
  return %0 : tensor<64x3xf32>
}

// -----

// Of several operands, which a reduction reads along the same dimension: neighbours along it lie far apart.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     xgpu.scan
// CHECK:         stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : (tensor<1x4096xf32>, tensor<1x4096xf32>) -> tensor<2x4096xf32>
// CHECK:         stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : (tensor<1x4096xi32>, tensor<1x4096xi32>) -> tensor<2x4096xi32>
func.func @main(%x: tensor<2x4096xf32>, %y: tensor<2x4096xi32>) -> (tensor<4096xf32>, tensor<4096xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "xgpu.scan"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %1 = stablehlo.multiply %a, %c : tensor<f32>
    %2 = stablehlo.add %b, %d : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<2x4096xf32>, tensor<2x4096xi32>) -> (tensor<2x4096xf32>, tensor<2x4096xi32>)
  %3 = stablehlo.abs %0#0 : tensor<2x4096xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x4096xf32>, tensor<f32>) -> tensor<4096xf32>
  %5 = stablehlo.reduce(%0#1 init: %none) applies stablehlo.maximum across dimensions = [0] : (tensor<2x4096xi32>, tensor<i32>) -> tensor<4096xi32>
  return %4, %5 : tensor<4096xf32>, tensor<4096xi32>
}

// -----

// Long ones stay, and those whose elements lie far apart, if they are stored.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: xgpu.scan
// CHECK-NOT:     stablehlo.slice
func.func @main(%x: tensor<64x9xf32>, %y: tensor<2x4096xf32>) -> (tensor<64x9xf32>, tensor<2x4096xf32>) {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {dimension = 1 : i64, reverse = false} : (tensor<64x9xf32>) -> tensor<64x9xf32>
  %2 = "xgpu.scan"(%y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<2x4096xf32>) -> tensor<2x4096xf32>
  return %0, %2 : tensor<64x9xf32>, tensor<2x4096xf32>
}
