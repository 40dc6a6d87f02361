// RUN: xgpu-opt %s -p squeeze-windows --split-input-file | FileCheck %s

// A dimension that was added for the windows goes, and so does the reshape after them.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.reshape
// CHECK:         %[[R:.*]] = "stablehlo.reduce_window"(%arg0, %{{.*}}) <{
// CHECK-SAME:      padding = dense<{{\[\[}}0, 0], [1, 2]]> : tensor<2x2xi64>
// CHECK-SAME:      window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>
// CHECK:         (tensor<8x9xf32>, tensor<f32>) -> tensor<8x5xf32>
// CHECK-NEXT:    return %[[R]]
func.func @main(%x: tensor<8x9xf32>) -> tensor<8x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<8x9xf32>) -> tensor<8x1x9xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{padding = dense<[[0, 0], [0, 0], [1, 2]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 1, 3>, window_strides = array<i64: 1, 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<8x1x9xf32>, tensor<f32>) -> tensor<8x1x5xf32>
  %2 = stablehlo.reshape %1 : (tensor<8x1x5xf32>) -> tensor<8x5xf32>
  return %2 : tensor<8x5xf32>
}

// -----

// What is read in both shapes is reshaped for the other; of two arrays both are squeezed.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<1x9xf32>) -> tensor<9xf32>
// CHECK-DAG:     %[[I:.*]] = stablehlo.reshape %arg1 : (tensor<1x9xi32>) -> tensor<9xi32>
// CHECK:         %[[R:.*]]:2 = "stablehlo.reduce_window"(%[[X]], %[[I]], %{{.*}}, %{{.*}}) <{window_dimensions = array<i64: 3>}>
// CHECK:         %[[W:.*]] = stablehlo.reshape %[[R]]#0 : (tensor<7xf32>) -> tensor<1x7xf32>
// CHECK:         return %[[W]], %[[R]]#1
func.func @main(%x: tensor<1x9xf32>, %i: tensor<1x9xi32>) -> (tensor<1x7xf32>, tensor<7xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce_window"(%x, %i, %zero, %none) <{window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %2 = stablehlo.add %a, %c : tensor<f32>
    %3 = stablehlo.add %b, %d : tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }) : (tensor<1x9xf32>, tensor<1x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<1x7xf32>, tensor<1x7xi32>)
  %1 = stablehlo.reshape %0#1 : (tensor<1x7xi32>) -> tensor<7xi32>
  return %0#0, %1 : tensor<1x7xf32>, tensor<7xi32>
}

// -----

// Windows with padding beside the one element are left; so is a dimension of several elements with one result.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.reshape
// CHECK:         "stablehlo.reduce_window"(%arg0
// CHECK-NOT:     stablehlo.reshape
func.func @main(%x: tensor<1x9xf32>, %y: tensor<3x9xf32>) -> (tensor<1x7xf32>, tensor<1x7xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<1x9xf32>, tensor<f32>) -> tensor<1x7xf32>
  %1 = "stablehlo.reduce_window"(%y, %zero) <{window_dimensions = array<i64: 3, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<3x9xf32>, tensor<f32>) -> tensor<1x7xf32>
  return %0, %1 : tensor<1x7xf32>, tensor<1x7xf32>
}

// -----

// Nor do windows go that have nothing of the one element: here it lies before them, and they begin between elements.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.reshape
// CHECK:         "stablehlo.reduce_window"(%arg0
// CHECK:         return
func.func @main(%x: tensor<1x9xf32>) -> tensor<1x7xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{base_dilations = array<i64: 3, 1>, padding = dense<[[-1, 1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x9xf32>, tensor<f32>) -> tensor<1x7xf32>
  return %0 : tensor<1x7xf32>
}
