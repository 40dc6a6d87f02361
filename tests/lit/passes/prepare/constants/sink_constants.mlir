// RUN: xgpu-opt %s -p sink-constants --split-input-file | FileCheck %s

// A branch makes the array of ones that it adds: it would read it from memory otherwise.

// CHECK-LABEL: func.func @main(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = "stablehlo.case"(%arg0) ({
// CHECK-NEXT:      %[[D:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.broadcast_in_dim %[[D]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.add %arg1, %[[E]] : tensor<8xf32>
// CHECK-NEXT:      stablehlo.return %[[F]] : tensor<8xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %arg1 : tensor<8xf32>
// CHECK-NEXT:    }) : (tensor<i32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[C]] : tensor<8xf32>
func.func @main(%i: tensor<i32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.add %x, %ones : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// What a loop hands on unchanged is a constant, too. Its condition gets copies as well, which XLA would be given.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[D:.*]]:3 = stablehlo.while(%iterArg = %[[C]], %iterArg_1 = %arg0, %iterArg_2 = %[[A]]) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.compare LT, %iterArg, %[[E]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[F]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.add %iterArg, %[[H]] : tensor<i32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.multiply %iterArg_1, %[[G]] : tensor<8xf32>
// CHECK-NEXT:      stablehlo.return %[[I]], %[[J]], %iterArg_2 : tensor<i32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[D]]#1 : tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<8xf32>
  %n = stablehlo.constant dense<10> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %step = %two) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.multiply %y, %step : tensor<8xf32>
    stablehlo.return %1, %2, %step : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}
