// RUN: xgpu-opt %s -p fold-pads --split-input-file | FileCheck %s

// What is padded with zeros before windows are summed is outside of the windows' array.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x9xf32>)
// CHECK-NOT:     stablehlo.pad
// CHECK:         "stablehlo.reduce_window"(%arg0, %{{.*}}) <{padding = dense<{{\[\[}}1, 1], [0, 5]]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 2>}>
// CHECK:         (tensor<8x9xf32>, tensor<f32>) -> tensor<8x13xf32>
func.func @main(%x: tensor<8x9xf32>) -> tensor<8x13xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1, 0], high = [1, 2], interior = [0, 0] : (tensor<8x9xf32>, tensor<f32>) -> tensor<10x11xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{padding = dense<[[0, 0], [0, 3]]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10x11xf32>, tensor<f32>) -> tensor<8x13xf32>
  return %1 : tensor<8x13xf32>
}

// -----

// Zeros are numbers to a maximum.

// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]] = stablehlo.pad
// CHECK:         "stablehlo.reduce_window"(%[[A]]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = "stablehlo.reduce_window"(%0, %lowest) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A pad that cuts is no padding of a window, nor is one between elements.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.pad
func.func @main(%x: tensor<8xf32>) -> (tensor<7xf32>, tensor<15xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [2], high = [-1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<9xf32>, tensor<f32>) -> tensor<7xf32>
  %3 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<17xf32>
  %4 = "stablehlo.reduce_window"(%3, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<17xf32>, tensor<f32>) -> tensor<15xf32>
  return %1, %4 : tensor<7xf32>, tensor<15xf32>
}
