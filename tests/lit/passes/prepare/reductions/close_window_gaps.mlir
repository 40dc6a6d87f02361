// RUN: xgpu-opt %s -p close-window-gaps --split-input-file | FileCheck %s

// The gradient of a pool whose windows do not overlap: each element is written as often as its window is long.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x8xf32>)
// CHECK-NEXT:    %[[Z:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<3x8xf32>) -> tensor<3x1x8x2xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[B]] : (tensor<3x1x8x2xf32>) -> tensor<3x16xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.broadcast_in_dim %[[Z]], dims = [] : (tensor<f32>) -> tensor<3x16xf32>
// CHECK-NEXT:    %[[S:.*]] = stablehlo.add %[[I]], %[[R]]
// CHECK-NEXT:    return %[[S]]
func.func @main(%x: tensor<3x8xf32>) -> tensor<3x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 1], high = [0, 1], interior = [0, 1] : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x17xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<3x17xf32>, tensor<f32>) -> tensor<3x16xf32>
  return %1 : tensor<3x16xf32>
}

// -----

// Windows of three over every second element meet one or two. They are summed in f32, and the dimension without gaps
// keeps its window.

// CHECK-LABEL: func.func @main(%arg0: tensor<6x8xbf16>)
// CHECK:         %[[X:.*]] = stablehlo.convert %arg0 : (tensor<6x8xbf16>) -> tensor<6x8xf32>
// CHECK:         %[[P:.*]] = stablehlo.pad %[[X]], %{{.*}}, low = [0, 0], high = [0, 1], interior = [0, 0]
// CHECK-NEXT:    %[[E:.*]] = stablehlo.slice %[[P]] [0:6, 0:8]
// CHECK-NEXT:    %[[N:.*]] = stablehlo.slice %[[P]] [0:6, 1:9]
// CHECK-NEXT:    %[[L:.*]] = stablehlo.add %[[E]], %[[N]] : tensor<6x8xf32>
// CHECK-NEXT:    %[[EARLY:.*]] = stablehlo.broadcast_in_dim %[[E]], dims = [0, 2] : (tensor<6x8xf32>) -> tensor<6x1x8x2xf32>
// CHECK-NEXT:    %[[LATE:.*]] = stablehlo.broadcast_in_dim %[[L]], dims = [0, 2] : (tensor<6x8xf32>) -> tensor<6x1x8x2xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.iota dim = 3 : tensor<6x1x8x2xi32>
// CHECK-NEXT:    %[[ONE:.*]] = stablehlo.constant dense<1>
// CHECK-NEXT:    %[[M:.*]] = stablehlo.compare GE, %[[I]], %[[ONE]]
// CHECK-NEXT:    %[[S:.*]] = stablehlo.select %[[M]], %[[LATE]], %[[EARLY]]
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[S]] : (tensor<6x1x8x2xf32>) -> tensor<6x16xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[R]] [0:6, 0:15]
// CHECK-NEXT:    %[[W:.*]] = "stablehlo.reduce_window"(%[[C]], %{{.*}}) <{window_dimensions = array<i64: 2, 1>}>
// CHECK:         }) : (tensor<6x15xf32>, tensor<f32>) -> tensor<5x15xf32>
// CHECK-NEXT:    %[[V:.*]] = stablehlo.convert %[[W]] : (tensor<5x15xf32>) -> tensor<5x15xbf16>
// CHECK-NEXT:    return %[[V]]
func.func @main(%x: tensor<6x8xbf16>) -> tensor<5x15xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.pad %x, %zero, low = [0, 1], high = [0, 1], interior = [0, 1] : (tensor<6x8xbf16>, tensor<bf16>) -> tensor<6x17xbf16>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 2, 3>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %2 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %2 : tensor<bf16>
  }) : (tensor<6x17xbf16>, tensor<bf16>) -> tensor<5x15xbf16>
  return %1 : tensor<5x15xbf16>
}

// -----

// What is between the elements counts here, and windows with a stride of their own are left.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.pad
// CHECK-COUNT-2: stablehlo.reduce_window
// CHECK:         return
func.func @main(%x: tensor<8xf32>) -> (tensor<16xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %x, %one, low = [1], high = [1], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<17xf32>
  %1 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<17xf32>
  %2 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<17xf32>, tensor<f32>) -> tensor<16xf32>
  %3 = "stablehlo.reduce_window"(%1, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<17xf32>, tensor<f32>) -> tensor<8xf32>
  return %2, %3 : tensor<16xf32>, tensor<8xf32>
}
