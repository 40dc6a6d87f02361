// RUN: xgpu-opt %s -p unnest-concatenations --split-input-file | FileCheck %s

// Rows of different parts, one of which is whole.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1x2xf32>, %arg1: tensor<8x1x3xf32>, %arg2: tensor<8x2x5xf32>) -> tensor<8x3x5xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.reshape %arg0 : (tensor<8x1x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %arg1 : (tensor<8x1x3xf32>) -> tensor<8x3xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reshape %arg2 : (tensor<8x2x5xf32>) -> tensor<8x10xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.concatenate %[[A]], %[[B]], %[[C]], dim = 1 : (tensor<8x2xf32>, tensor<8x3xf32>, tensor<8x10xf32>) -> tensor<8x15xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.reshape %[[D]] : (tensor<8x15xf32>) -> tensor<8x3x5xf32>
// CHECK-NEXT:    return %[[E]] : tensor<8x3x5xf32>
func.func @main(%a: tensor<8x1x2xf32>, %b: tensor<8x1x3xf32>, %c: tensor<8x2x5xf32>) -> tensor<8x3x5xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 2 : (tensor<8x1x2xf32>, tensor<8x1x3xf32>) -> tensor<8x1x5xf32>
  %1 = stablehlo.concatenate %0, %c, dim = 1 : (tensor<8x1x5xf32>, tensor<8x2x5xf32>) -> tensor<8x3x5xf32>
  return %1 : tensor<8x3x5xf32>
}

// -----

// Stacks of stacks, through reshapes and broadcasts that only add dimensions.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8x2x2xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %arg1 : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %[[A]], %[[B]], %[[B]], %[[A]], dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %[[C]] : (tensor<8x4xf32>) -> tensor<8x2x2xf32>
// CHECK-NEXT:    return %[[D]] : tensor<8x2x2xf32>
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8x2x2xf32> {
  %0 = stablehlo.reshape %a : (tensor<8xf32>) -> tensor<8x1xf32>
  %1 = stablehlo.reshape %b : (tensor<8xf32>) -> tensor<8x1xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 2] : (tensor<8x2xf32>) -> tensor<8x1x2xf32>
  %4 = stablehlo.concatenate %1, %0, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %5 = stablehlo.reshape %4 : (tensor<8x2xf32>) -> tensor<8x1x2xf32>
  %6 = stablehlo.concatenate %3, %5, dim = 1 : (tensor<8x1x2xf32>, tensor<8x1x2xf32>) -> tensor<8x2x2xf32>
  return %6 : tensor<8x2x2xf32>
}

// -----

// Columns of single elements, beside each other: row by row.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>, %arg1: tensor<8x1xf32>, %arg2: tensor<8x2x4xf32>) -> (tensor<8x2x2xf32>, tensor<8x2x5xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg1, %arg1, %arg0, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %[[A]] : (tensor<8x4xf32>) -> tensor<8x2x2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %[[C]] : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.concatenate %[[D]], %arg2, dim = 2 : (tensor<8x2x1xf32>, tensor<8x2x4xf32>) -> tensor<8x2x5xf32>
// CHECK-NEXT:    return %[[B]], %[[E]] : tensor<8x2x2xf32>, tensor<8x2x5xf32>
func.func @main(%a: tensor<8x1xf32>, %b: tensor<8x1xf32>, %c: tensor<8x2x4xf32>) -> (tensor<8x2x2xf32>, tensor<8x2x5xf32>) {
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %1 = stablehlo.reshape %0 : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
  %2 = stablehlo.concatenate %b, %a, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %3 = stablehlo.reshape %2 : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
  %4 = stablehlo.concatenate %1, %3, dim = 2 : (tensor<8x2x1xf32>, tensor<8x2x1xf32>) -> tensor<8x2x2xf32>
  // A column that is whole stays one.
  %5 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %6 = stablehlo.reshape %5 : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
  %7 = stablehlo.concatenate %6, %c, dim = 2 : (tensor<8x2x1xf32>, tensor<8x2x4xf32>) -> tensor<8x2x5xf32>
  return %4, %7 : tensor<8x2x2xf32>, tensor<8x2x5xf32>
}

// -----

// These stay: several rows at once, and rows that are used elsewhere.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x3xf32>, %arg1: tensor<1x3xf32>) -> (tensor<4x6xf32>, tensor<2x6xf32>, tensor<1x6xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg0, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.concatenate %arg0, %arg0, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %[[A]], %[[B]], dim = 0 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.concatenate %arg1, %arg1, dim = 1 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x6xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.concatenate %[[D]], %[[D]], dim = 0 : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:    return %[[C]], %[[E]], %[[D]] : tensor<4x6xf32>, tensor<2x6xf32>, tensor<1x6xf32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<1x3xf32>) -> (tensor<4x6xf32>, tensor<2x6xf32>, tensor<1x6xf32>) {
  %0 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %1 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  %3 = stablehlo.concatenate %b, %b, dim = 1 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x6xf32>
  %4 = stablehlo.concatenate %3, %3, dim = 0 : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
  return %2, %4, %3 : tensor<4x6xf32>, tensor<2x6xf32>, tensor<1x6xf32>
}

// -----

// What a loop reads from outside is put together there, once.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1x2xf32>, %arg1: tensor<8x1x3xf32>, %arg2: tensor<8x2x5xf32>, %arg3: tensor<i32>) -> tensor<8x2x5xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 2 : (tensor<8x1x2xf32>, tensor<8x1x3xf32>) -> tensor<8x1x5xf32>
// CHECK-NEXT:    %[[B:.*]]:2 = stablehlo.while(%[[C:.*]] = %arg3, %[[D:.*]] = %arg2) : tensor<i32>, tensor<8x2x5xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.compare GT, %[[C]], %[[E]], SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[F]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[H:.*]] = stablehlo.concatenate %[[A]], %[[D]], dim = 1 : (tensor<8x1x5xf32>, tensor<8x2x5xf32>) -> tensor<8x3x5xf32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.slice %[[H]] [0:8, 0:2, 0:5] : (tensor<8x3x5xf32>) -> tensor<8x2x5xf32>
// CHECK-NEXT:      stablehlo.return %[[C]], %[[G]] : tensor<i32>, tensor<8x2x5xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#1 : tensor<8x2x5xf32>
func.func @main(%a: tensor<8x1x2xf32>, %b: tensor<8x1x3xf32>, %c: tensor<8x2x5xf32>, %n: tensor<i32>) -> tensor<8x2x5xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 2 : (tensor<8x1x2xf32>, tensor<8x1x3xf32>) -> tensor<8x1x5xf32>
  %1:2 = stablehlo.while(%i = %n, %x = %c) : tensor<i32>, tensor<8x2x5xf32>
  cond {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.compare GT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.concatenate %0, %x, dim = 1 : (tensor<8x1x5xf32>, tensor<8x2x5xf32>) -> tensor<8x3x5xf32>
    %3 = stablehlo.slice %2 [0:8, 0:2, 0:5] : (tensor<8x3x5xf32>) -> tensor<8x2x5xf32>
    stablehlo.return %i, %3 : tensor<i32>, tensor<8x2x5xf32>
  }
  return %1#1 : tensor<8x2x5xf32>
}
