// RUN: xgpu-opt %s -p split-wide-windows --split-input-file | FileCheck %s

// Windows of 48 elements are put together from one of 16 and one of 32, and those from pairs.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.reduce_window
// CHECK:         %[[A:.*]] = stablehlo.slice %[[X:.*]] [0:4194303]
// CHECK-NEXT:    %[[B:.*]] = stablehlo.slice %[[X]] [1:4194304]
// CHECK-NEXT:    %[[PAIRS:.*]] = stablehlo.add %[[A]], %[[B]] : tensor<4194303xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[PAIRS]] [0:4194301]
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %[[PAIRS]] [2:4194303]
// CHECK-NEXT:    %[[FOURS:.*]] = stablehlo.add %[[C]], %[[D]] : tensor<4194301xf32>
// CHECK:         %[[SIXTEENS:.*]] = stablehlo.add %{{.*}}, %{{.*}} : tensor<4194289xf32>
// CHECK-NEXT:    %[[FIRST:.*]] = stablehlo.slice %[[SIXTEENS]] [0:4194257]
// CHECK-NEXT:    %[[E:.*]] = stablehlo.slice %[[SIXTEENS]] [0:4194273]
// CHECK-NEXT:    %[[F:.*]] = stablehlo.slice %[[SIXTEENS]] [16:4194289]
// CHECK-NEXT:    %[[THIRTY_TWOS:.*]] = stablehlo.add %[[E]], %[[F]] : tensor<4194273xf32>
// CHECK-NEXT:    %[[REST:.*]] = stablehlo.slice %[[THIRTY_TWOS]] [16:4194273]
// CHECK-NEXT:    stablehlo.add %[[FIRST]], %[[REST]] : tensor<4194257xf32>
func.func @main(%x: tensor<4194304xf32>) -> tensor<4194257xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 48>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4194304xf32>, tensor<f32>) -> tensor<4194257xf32>
  return %0 : tensor<4194257xf32>
}

// -----

// Of maxima two windows of 32 may overlap.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.reduce_window
// CHECK:         %[[THIRTY_TWOS:.*]] = stablehlo.maximum %{{.*}}, %{{.*}} : tensor<4194273xf32>
// CHECK-NEXT:    %[[REST:.*]] = stablehlo.slice %[[THIRTY_TWOS]] [16:4194273]
// CHECK-NEXT:    %[[FIRST:.*]] = stablehlo.slice %[[THIRTY_TWOS]] [0:4194257]
// CHECK-NEXT:    stablehlo.maximum %[[FIRST]], %[[REST]] : tensor<4194257xf32>
func.func @main(%x: tensor<4194304xf32>) -> tensor<4194257xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 48>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4194304xf32>, tensor<f32>) -> tensor<4194257xf32>
  return %0 : tensor<4194257xf32>
}

// -----

// Three elements are added up as fast.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.reduce_window
// CHECK-NOT:     stablehlo.slice
func.func @main(%x: tensor<4194304xf32>) -> tensor<4194302xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4194304xf32>, tensor<f32>) -> tensor<4194302xf32>
  return %0 : tensor<4194302xf32>
}
