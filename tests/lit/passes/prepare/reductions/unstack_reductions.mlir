// RUN: xgpu-opt %s -p unstack-reductions --split-input-file | FileCheck %s

// What is done to the stacked array is done to each part.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>, %arg1: tensor<8x1xf32>) -> tensor<8xf32>
// CHECK:         %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK:         %[[START:.*]] = stablehlo.broadcast_in_dim %[[ZERO]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.exponential %arg0 : tensor<8x1xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %[[A]] : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[START]], %[[B]] : tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.exponential %arg1 : tensor<8x1xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.reshape %[[D]] : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.add %[[C]], %[[E]] : tensor<8xf32>
// CHECK-NEXT:    return %[[F]] : tensor<8xf32>
func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x1xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.concatenate %x, %y, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %e = stablehlo.exponential %s : tensor<8x2xf32>
  %0 = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Other dimensions are reduced as before; an array that is not stacked is sliced.

// CHECK-LABEL: func.func @main(%arg0: tensor<1x8xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<2x8xf32>) -> tensor<f32>
// CHECK:         %[[A:.*]] = stablehlo.slice %arg2 [0:1, 0:8] : (tensor<2x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.multiply %arg0, %[[A]] : tensor<1x8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reshape %[[B]] : (tensor<1x8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %arg2 [1:2, 0:8] : (tensor<2x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.multiply %arg1, %[[D]] : tensor<1x8xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.reshape %[[E]] : (tensor<1x8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.maximum %[[C]], %[[F]] : tensor<8xf32>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.reduce(%[[G]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    return %[[H]] : tensor<f32>
func.func @main(%x: tensor<1x8xf32>, %y: tensor<1x8xf32>, %z: tensor<2x8xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.concatenate %x, %y, dim = 0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  %p = stablehlo.multiply %s, %z : tensor<2x8xf32>
  %0 = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Arrays that are longer than one element are put together to be reduced, and so are those along another dimension.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x2xf32>, %arg1: tensor<8x1xf32>) -> (tensor<8xf32>, tensor<3xf32>)
// CHECK:         stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK:         stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<8x3xf32>, tensor<f32>) -> tensor<3xf32>
func.func @main(%x: tensor<8x2xf32>, %y: tensor<8x1xf32>) -> (tensor<8xf32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.concatenate %x, %y, dim = 1 : (tensor<8x2xf32>, tensor<8x1xf32>) -> tensor<8x3xf32>
  %0 = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<8xf32>
  %s1 = stablehlo.concatenate %y, %y, %y, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x3xf32>
  %1 = stablehlo.reduce(%s1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0, %1 : tensor<8xf32>, tensor<3xf32>
}

// -----

// Arrays without elements are no part of a stack, however many arrays there are.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x0xf32>, %arg1: tensor<8x2xf32>) -> tensor<8xf32>
// CHECK:         stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
func.func @main(%x: tensor<8x0xf32>, %y: tensor<8x2xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.concatenate %x, %y, dim = 1 : (tensor<8x0xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %0 = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// What several reductions need of the arrays is made once for all of them.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>, %arg1: tensor<8x1xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK:         %[[A:.*]] = stablehlo.exponential %arg0 : tensor<8x1xf32>
// CHECK:         %[[B:.*]] = stablehlo.exponential %arg1 : tensor<8x1xf32>
// CHECK-NOT:     stablehlo.exponential
// CHECK:         stablehlo.multiply %[[A]], %[[A]] : tensor<8x1xf32>
// CHECK:         stablehlo.multiply %[[B]], %[[B]] : tensor<8x1xf32>
// CHECK-NOT:     stablehlo.reduce
// CHECK:         return
func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x1xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.concatenate %x, %y, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %e = stablehlo.exponential %s : tensor<8x2xf32>
  %0 = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
  %m = stablehlo.multiply %e, %e : tensor<8x2xf32>
  %1 = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Of a slice along the dimension, the arrays that it takes.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>, %arg1: tensor<8x1xf32>, %arg2: tensor<8x1xf32>, %arg3: tensor<f32>)
// CHECK:         %[[A:.*]] = stablehlo.broadcast_in_dim %arg3
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %arg0 : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[A]], %[[B]] : tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %arg2 : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[C]], %[[D]] : tensor<8xf32>
// CHECK-NEXT:    return %[[E]] : tensor<8xf32>
func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x1xf32>, %z: tensor<8x1xf32>, %start: tensor<f32>) -> tensor<8xf32> {
  %s = stablehlo.concatenate %x, %y, %z, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x3xf32>
  %t = stablehlo.slice %s [0:8, 0:3:2] : (tensor<8x3xf32>) -> tensor<8x2xf32>
  %0 = stablehlo.reduce(%t init: %start) applies stablehlo.add across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A slice along another dimension stays with the stacked array.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.concatenate
// CHECK:         stablehlo.slice
// CHECK:         stablehlo.reduce
func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x1xf32>, %start: tensor<f32>) -> tensor<3xf32> {
  %s = stablehlo.concatenate %x, %y, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %t = stablehlo.slice %s [2:5, 0:2] : (tensor<8x2xf32>) -> tensor<3x2xf32>
  %0 = stablehlo.reduce(%t init: %start) applies stablehlo.add across dimensions = [1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
