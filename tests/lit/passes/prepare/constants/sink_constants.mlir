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

// -----

// A few numbers that are computed of constants are constants too: here the place of the slice that the loop updates.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<4x4xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %[[A]] : (tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.concatenate %[[D]], %[[D]], dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
// CHECK-NEXT:    %[[F:.*]]:3 = stablehlo.while(%iterArg = %[[C]], %iterArg_2 = %arg0, %iterArg_3 = %[[E]]) : tensor<i32>, tensor<8x8xf32>, tensor<2xi32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.compare LT, %iterArg, %[[G]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[H]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[G]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[H]] = stablehlo.reshape %[[I]] : (tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.concatenate %[[H]], %[[H]], dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.add %iterArg, %[[G]] : tensor<i32>
// CHECK-NEXT:      %[[L:.*]] = "stablehlo.scatter"(%iterArg_2, %[[J]], %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>, unique_indices = true}> ({
// CHECK-NEXT:      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:        stablehlo.return %arg3 : tensor<f32>
// CHECK-NEXT:      }) : (tensor<8x8xf32>, tensor<2xi32>, tensor<4x4xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:      stablehlo.return %[[K]], %[[L]], %iterArg_3 : tensor<i32>, tensor<8x8xf32>, tensor<2xi32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]#1 : tensor<8x8xf32>
func.func @main(%x: tensor<8x8xf32>, %y: tensor<4x4xf32>) -> tensor<8x8xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<10> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %row = stablehlo.reshape %one : (tensor<i32>) -> tensor<1xi32>
  %place = stablehlo.concatenate %row, %row, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0:3 = stablehlo.while(%i = %zero, %z = %x, %at = %place) : tensor<i32>, tensor<8x8xf32>, tensor<2xi32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = "stablehlo.scatter"(%z, %at, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>, unique_indices = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8x8xf32>, tensor<2xi32>, tensor<4x4xf32>) -> tensor<8x8xf32>
    stablehlo.return %1, %2, %at : tensor<i32>, tensor<8x8xf32>, tensor<2xi32>
  }
  return %0#1 : tensor<8x8xf32>
}

// -----

// An array of a number that is computed of constants, as a bound of another type is, which was merged with one around.

// CHECK-LABEL: func.func @main
// CHECK:         do {
// CHECK:           %[[A:.*]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT:      %[[B:.*]] = stablehlo.convert %[[A]] : (tensor<i32>) -> tensor<f32>
// CHECK-NEXT:      %[[C:.*]] = stablehlo.broadcast_in_dim %[[B]], dims = [] : (tensor<f32>) -> tensor<64xf32>
// CHECK:           stablehlo.maximum %{{.*}}, %[[C]]
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %three = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.convert %three : (tensor<i32>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<64xf32>
  %2 = stablehlo.maximum %x, %1 : tensor<64xf32>
  %3:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<64xf32>
  cond {
    %4 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    %5 = stablehlo.maximum %y, %1 : tensor<64xf32>
    stablehlo.return %4, %5 : tensor<i32>, tensor<64xf32>
  }
  return %2, %3#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// So is an array of one number that is computed of constants.

// CHECK-LABEL: func.func @main(%arg0: tensor<80xf32>, %arg1: tensor<i32>) -> tensor<80xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.convert %[[A]] : (tensor<i32>) -> tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.broadcast_in_dim %[[B]], dims = [] : (tensor<f32>) -> tensor<80xf32>
// CHECK-NEXT:    %[[D:.*]] = "stablehlo.case"(%arg1) ({
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.convert %[[E]] : (tensor<i32>) -> tensor<f32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.broadcast_in_dim %[[F]], dims = [] : (tensor<f32>) -> tensor<80xf32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.add %arg0, %[[G]] : tensor<80xf32>
// CHECK-NEXT:      stablehlo.return %[[H]] : tensor<80xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %arg0 : tensor<80xf32>
// CHECK-NEXT:    }) : (tensor<i32>) -> tensor<80xf32>
// CHECK-NEXT:    return %[[D]] : tensor<80xf32>
func.func @main(%x: tensor<80xf32>, %i: tensor<i32>) -> tensor<80xf32> {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %number = stablehlo.convert %two : (tensor<i32>) -> tensor<f32>
  %twos = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<80xf32>
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.add %x, %twos : tensor<80xf32>
    stablehlo.return %1 : tensor<80xf32>
  }, {
    stablehlo.return %x : tensor<80xf32>
  }) : (tensor<i32>) -> tensor<80xf32>
  return %0 : tensor<80xf32>
}
