// RUN: xgpu-opt %s -p find-prefix-scans --split-input-file | FileCheck %s

// Windows that start at the first element.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<f32>
// CHECK-NEXT:    }) {dimension = 0 : i64, reverse = false} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[D]], %[[B]] : tensor<8xf32>
// CHECK-NEXT:    return %[[E]] : tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[7, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Windows of three elements stay.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = "stablehlo.reduce_window"(%arg0, %[[A]]) <{padding = dense<{{\[\[}}2, 0{{\]\]}}> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<f32>
// CHECK-NEXT:    }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[2, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Windows that end at the last element, in which those taken in first are the later ones: no matter to a sum, else they
// come second.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xi32>)
// CHECK:         "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>):
// CHECK-NEXT:      stablehlo.add %[[A]], %[[B]] : tensor<f32>
// CHECK:         {dimension = 0 : i64, reverse = true}
// CHECK:         "xgpu.scan"(%{{.*}}, %arg1) ({
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<f32>, %[[I:.*]]: tensor<i32>, %[[B:.*]]: tensor<f32>, %[[J:.*]]: tensor<i32>):
// CHECK-NEXT:      %[[K:.*]] = stablehlo.compare GE, %[[B]], %[[A]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.select %[[K]], %[[B]], %[[A]]
// CHECK-NEXT:      stablehlo.select %[[K]], %[[J]], %[[I]]
// CHECK:         {dimension = 0 : i64, reverse = true}
func.func @main(%x: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 7]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2:2 = "stablehlo.reduce_window"(%0, %i, %zero, %none) <{padding = dense<[[0, 7]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8>}> ({
  ^bb0(%a: tensor<f32>, %k: tensor<i32>, %b: tensor<f32>, %l: tensor<i32>):
    %3 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<f32>
    %5 = stablehlo.select %3, %k, %l : tensor<i1>, tensor<i32>
    stablehlo.return %4, %5 : tensor<f32>, tensor<i32>
  }) : (tensor<8xf32>, tensor<8xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
  return %2#0, %2#1 : tensor<8xf32>, tensor<8xi32>
}

// -----

// In types without infinities, extremes start from the numbers at the ends. NaN, which an infinity would be there, is
// taken in.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[A:.*]] = "xgpu.scan"(%arg0) ({
// CHECK:         }) {dimension = 0 : i64, reverse = false}
// CHECK:         %[[B:.*]] = "xgpu.scan"(%arg0) ({
// CHECK:         }) {dimension = 0 : i64, reverse = false}
// CHECK:         %[[C:.*]] = stablehlo.broadcast_in_dim
// CHECK-NEXT:    %[[D:.*]] = stablehlo.minimum %[[C]], %[[B]] : tensor<8xf8E4M3FN>
// CHECK-NEXT:    return %[[A]], %[[D]]
func.func @main(%x: tensor<8xf8E4M3FN>) -> (tensor<8xf8E4M3FN>, tensor<8xf8E4M3FN>) {
  %highest = stablehlo.constant dense<448.0> : tensor<f8E4M3FN>
  %nan = stablehlo.constant dense<0x7F> : tensor<f8E4M3FN>
  %0 = "stablehlo.reduce_window"(%x, %highest) <{padding = dense<[[7, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8>}> ({
  ^bb0(%a: tensor<f8E4M3FN>, %b: tensor<f8E4M3FN>):
    %2 = stablehlo.minimum %a, %b : tensor<f8E4M3FN>
    stablehlo.return %2 : tensor<f8E4M3FN>
  }) : (tensor<8xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<8xf8E4M3FN>
  %1 = "stablehlo.reduce_window"(%x, %nan) <{padding = dense<[[7, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 8>}> ({
  ^bb0(%a: tensor<f8E4M3FN>, %b: tensor<f8E4M3FN>):
    %2 = stablehlo.minimum %a, %b : tensor<f8E4M3FN>
    stablehlo.return %2 : tensor<f8E4M3FN>
  }) : (tensor<8xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<8xf8E4M3FN>
  return %0, %1 : tensor<8xf8E4M3FN>, tensor<8xf8E4M3FN>
}
