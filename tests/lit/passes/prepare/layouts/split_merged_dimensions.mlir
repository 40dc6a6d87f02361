// RUN: xgpu-opt %s -p 'split-merged-dimensions{least-bytes=1}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p split-merged-dimensions --split-input-file | FileCheck %s --check-prefix=SMALL

// SMALL: tensor<3x56xf32>

// A norm of rows that are pieces of an image, to which it is reshaped and back.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x7x6xf32>, %arg1: tensor<3xf32>)
// CHECK-NEXT:    %[[Z:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<4x7x6xf32>) -> tensor<6x4x7xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[T]] : (tensor<6x4x7xf32>) -> tensor<3x2x4x7xf32>
// CHECK-NEXT:    %[[S:.*]] = stablehlo.reduce(%[[R]] init: %[[Z]]) applies stablehlo.add across dimensions = [1, 2, 3] : (tensor<3x2x4x7xf32>, tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT:    %[[K:.*]] = stablehlo.broadcast_in_dim %[[S]], dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[K]], dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x2x4x7xf32>
// CHECK-NEXT:    %[[M:.*]] = stablehlo.subtract %[[R]], %[[B]] : tensor<3x2x4x7xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.iota dim = 0 : tensor<3x2x4x7xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.add %[[M]], %[[I]] : tensor<3x2x4x7xf32>
// CHECK-NEXT:    %[[O:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<3x2x4x7xf32>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.multiply %[[A]], %[[O]] : tensor<3x2x4x7xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.reshape %[[P]] : (tensor<3x2x4x7xf32>) -> tensor<6x4x7xf32>
// CHECK-NEXT:    return %[[F]]
func.func @main(%x: tensor<4x7x6xf32>, %g: tensor<3xf32>) -> tensor<6x4x7xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<4x7x6xf32>) -> tensor<6x4x7xf32>
  %1 = stablehlo.reshape %0 : (tensor<6x4x7xf32>) -> tensor<3x56xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x56xf32>, tensor<f32>) -> tensor<3xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x56xf32>
  %5 = stablehlo.subtract %1, %4 : tensor<3x56xf32>
  %6 = stablehlo.iota dim = 0 : tensor<3x56xf32>
  %7 = stablehlo.add %5, %6 : tensor<3x56xf32>
  %two = stablehlo.constant dense<2.0> : tensor<3x56xf32>
  %8 = stablehlo.multiply %7, %two : tensor<3x56xf32>
  %9 = stablehlo.reshape %8 : (tensor<3x56xf32>) -> tensor<6x4x7xf32>
  return %9 : tensor<6x4x7xf32>
}

// -----

// Where positions along the merged dimension count, or a product or the program's result has it, it stays. So it does
// where nothing is transposed, and where what is merged is split in other places.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.iota dim = 0 : tensor<28xf32>
// CHECK:         stablehlo.add %{{.*}}, %{{.*}} : tensor<6x28xf32>
// CHECK:         stablehlo.negate %{{.*}} : tensor<6x28xf32>
// CHECK:         stablehlo.dot_general
// CHECK:         stablehlo.exponential %{{.*}} : tensor<8x21xf32>
// CHECK:         stablehlo.sine %{{.*}} : tensor<28x6xf32>
func.func @main(%x: tensor<4x7x6xf32>, %y: tensor<4x7x6xf32>) -> (tensor<6x28xf32>, tensor<6x6xf32>, tensor<6x4x7xf32>, tensor<4x7x6xf32>) {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<4x7x6xf32>) -> tensor<6x4x7xf32>
  %1 = stablehlo.reshape %0 : (tensor<6x4x7xf32>) -> tensor<6x28xf32>
  %2 = stablehlo.iota dim = 0 : tensor<28xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<28xf32>) -> tensor<6x28xf32>
  %4 = stablehlo.add %1, %3 : tensor<6x28xf32>
  %5 = stablehlo.reshape %0 : (tensor<6x4x7xf32>) -> tensor<6x28xf32>
  %6 = stablehlo.negate %5 : tensor<6x28xf32>
  %7 = stablehlo.dot_general %6, %6, contracting_dims = [1] x [1] : (tensor<6x28xf32>, tensor<6x28xf32>) -> tensor<6x6xf32>
  %8 = stablehlo.reshape %0 : (tensor<6x4x7xf32>) -> tensor<8x21xf32>
  %9 = stablehlo.exponential %8 : tensor<8x21xf32>
  %10 = stablehlo.reshape %9 : (tensor<8x21xf32>) -> tensor<6x4x7xf32>
  %11 = stablehlo.reshape %y : (tensor<4x7x6xf32>) -> tensor<28x6xf32>
  %12 = stablehlo.sine %11 : tensor<28x6xf32>
  %13 = stablehlo.reshape %12 : (tensor<28x6xf32>) -> tensor<4x7x6xf32>
  return %4, %7, %10, %13 : tensor<6x28xf32>, tensor<6x6xf32>, tensor<6x4x7xf32>, tensor<4x7x6xf32>
}
