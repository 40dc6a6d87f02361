// RUN: xgpu-opt %s -p concatenate-pads --split-input-file | FileCheck %s

// Columns, one of which is added twice: in the order of the program. Where nothing lies there are zeros.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>, %arg1: tensor<8x2xf32>, %arg2: tensor<8x1xf32>) -> tensor<8x5xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.add %arg0, %arg2 : tensor<8x1xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8x1xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.add %[[B]], %[[C]] : tensor<8x1xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8x2xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8x2xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.add %arg1, %[[F]] : tensor<8x2xf32>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.concatenate %[[D]], %[[E]], %[[G]], dim = 1 : (tensor<8x1xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x5xf32>
// CHECK-NEXT:    return %[[H]] : tensor<8x5xf32>
func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x2xf32>, %z: tensor<8x1xf32>) -> tensor<8x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 0], high = [0, 4], interior = [0, 0] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x5xf32>
  %1 = stablehlo.pad %y, %zero, low = [0, 3], high = [0, 0], interior = [0, 0] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x5xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x5xf32>
  %3 = stablehlo.pad %z, %zero, low = [0, 0], high = [0, 4], interior = [0, 0] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x5xf32>
  %4 = stablehlo.add %2, %3 : tensor<8x5xf32>
  return %4 : tensor<8x5xf32>
}

// -----

// Boxes: one cut through all of the array after the other.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x3xi32>, %arg1: tensor<2x1xi32>, %arg2: tensor<2x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2x4xi32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %[[B]], %arg2, dim = 0 : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT:    return %[[C]] : tensor<4x4xi32>
func.func @main(%x: tensor<2x3xi32>, %y: tensor<2x1xi32>, %z: tensor<2x4xi32>) -> tensor<4x4xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.pad %x, %zero, low = [0, 0], high = [2, 1], interior = [0, 0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<4x4xi32>
  %1 = stablehlo.pad %y, %zero, low = [0, 3], high = [2, 0], interior = [0, 0] : (tensor<2x1xi32>, tensor<i32>) -> tensor<4x4xi32>
  %2 = stablehlo.pad %z, %zero, low = [2, 0], high = [0, 0], interior = [0, 0] : (tensor<2x4xi32>, tensor<i32>) -> tensor<4x4xi32>
  %3 = stablehlo.add %1, %2 : tensor<4x4xi32>
  %4 = stablehlo.add %0, %3 : tensor<4x4xi32>
  return %4 : tensor<4x4xi32>
}

// -----

// Every second element, in the halves that a stride leaves: the dimension is two.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xf32>) -> tensor<4x6xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<4x3xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %arg1, %[[B]] : tensor<4x3xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %[[C]] : (tensor<4x3xf32>) -> tensor<4x3x1xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<4x3xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.add %arg0, %[[E]] : tensor<4x3xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.reshape %[[F]] : (tensor<4x3xf32>) -> tensor<4x3x1xf32>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.concatenate %[[D]], %[[G]], dim = 2 : (tensor<4x3x1xf32>, tensor<4x3x1xf32>) -> tensor<4x3x2xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.reshape %[[H]] : (tensor<4x3x2xf32>) -> tensor<4x6xf32>
// CHECK-NEXT:    return %[[I]] : tensor<4x6xf32>
func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x6xf32>
  %1 = stablehlo.pad %y, %zero, low = [0, 0], high = [0, 1], interior = [0, 1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x6xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// -----

// What is everywhere stays the first operand of the sum; an array at the place of one that was added to it comes after.

// CHECK-LABEL: func.func @main(%arg0: tensor<6xf32>, %arg1: tensor<2xf32>, %arg2: tensor<4xf32>, %arg3: tensor<2xf32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %arg1, %[[B]] : tensor<2xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %arg2, %[[D]] : tensor<4xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.concatenate %[[C]], %[[E]], dim = 0 : (tensor<2xf32>, tensor<4xf32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.add %arg0, %[[F]] : tensor<6xf32>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.pad %arg3, %[[H]], low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[J:.*]] = stablehlo.add %[[G]], %[[I]] : tensor<6xf32>
// CHECK-NEXT:    return %[[J]] : tensor<6xf32>
func.func @main(%a: tensor<6xf32>, %x: tensor<2xf32>, %y: tensor<4xf32>, %z: tensor<2xf32>) -> tensor<6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.pad %y, %zero, low = [2], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.pad %z, %zero, low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %3 = stablehlo.add %a, %0 : tensor<6xf32>
  %4 = stablehlo.add %3, %1 : tensor<6xf32>
  %5 = stablehlo.add %4, %2 : tensor<6xf32>
  return %5 : tensor<6xf32>
}

// -----

// Zeros that are updated at known places; starts are clamped.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x1xf32>, %arg1: tensor<2x1xf32>) -> tensor<2x2xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<2x2xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<9> : tensor<i32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<2x1xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %arg0, %[[D]] : tensor<2x1xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<2x1xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.add %arg1, %[[F]] : tensor<2x1xf32>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.concatenate %[[E]], %[[G]], dim = 1 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
// CHECK-NEXT:    return %[[H]] : tensor<2x2xf32>
func.func @main(%x: tensor<2x1xf32>, %y: tensor<2x1xf32>) -> tensor<2x2xf32> {
  %zeros = stablehlo.constant dense<0.0> : tensor<2x2xf32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c9 = stablehlo.constant dense<9> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %zeros, %x, %c0, %c0 : (tensor<2x2xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
  %1 = stablehlo.dynamic_update_slice %zeros, %y, %c0, %c9 : (tensor<2x2xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}

// -----

// At the same place alone: one pad of the sum.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg0, %[[A]], low = [1], high = [2], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %arg0, %arg1 : tensor<2xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.pad %[[C]], %[[D]], low = [2], high = [2], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.add %[[B]], %[[E]] : tensor<6xf32>
// CHECK-NEXT:    return %[[F]] : tensor<6xf32>
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1], high = [2], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.pad %x, %zero, low = [2], high = [2], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.pad %y, %zero, low = [2], high = [2], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %3 = stablehlo.add %1, %2 : tensor<6xf32>
  %4 = stablehlo.add %0, %3 : tensor<6xf32>
  return %4 : tensor<6xf32>
}

// -----

// These stay: arrays that overlap, negative zeros, other numbers, negative padding, and a sum with other users.

// CHECK-LABEL: func.func @main(%arg0: tensor<5xf32>, %arg1: tensor<1xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.pad %arg0, %[[A]], low = [0], high = [1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.pad %arg0, %[[A]], low = [1], high = [0], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[C]], %[[D]] : tensor<6xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.pad %arg1, %[[B]], low = [5], high = [0], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.add %[[C]], %[[F]] : tensor<6xf32>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.pad %arg0, %[[A]], low = [2], high = [-1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.pad %arg1, %[[A]], low = [0], high = [5], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[J:.*]] = stablehlo.add %[[H]], %[[I]] : tensor<6xf32>
// CHECK-NEXT:    %[[K:.*]] = stablehlo.add %[[E]], %[[I]] : tensor<6xf32>
// CHECK-NEXT:    return %[[E]], %[[G]], %[[J]], %[[K]] : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
func.func @main(%x: tensor<5xf32>, %y: tensor<1xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %negative = stablehlo.constant dense<-0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0], high = [1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.pad %x, %zero, low = [1], high = [0], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.add %0, %1 : tensor<6xf32>
  %3 = stablehlo.pad %y, %negative, low = [5], high = [0], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<6xf32>
  %4 = stablehlo.add %0, %3 : tensor<6xf32>
  %5 = stablehlo.pad %x, %zero, low = [2], high = [-1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  %6 = stablehlo.pad %y, %zero, low = [0], high = [5], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<6xf32>
  %7 = stablehlo.add %5, %6 : tensor<6xf32>
  %8 = stablehlo.add %2, %6 : tensor<6xf32>
  return %2, %4, %7, %8 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Four boxes around a fifth: no cut goes through.

// CHECK-LABEL: func.func @main(%arg0: tensor<1x2xi8>, %arg1: tensor<2x1xi8>) -> tensor<3x3xi8>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i8>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg0, %[[A]], low = [0, 0], high = [2, 1], interior = [0, 0] : (tensor<1x2xi8>, tensor<i8>) -> tensor<3x3xi8>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.pad %arg1, %[[A]], low = [0, 2], high = [1, 0], interior = [0, 0] : (tensor<2x1xi8>, tensor<i8>) -> tensor<3x3xi8>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.pad %arg0, %[[A]], low = [2, 1], high = [0, 0], interior = [0, 0] : (tensor<1x2xi8>, tensor<i8>) -> tensor<3x3xi8>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.pad %arg1, %[[A]], low = [1, 0], high = [0, 2], interior = [0, 0] : (tensor<2x1xi8>, tensor<i8>) -> tensor<3x3xi8>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.add %[[B]], %[[C]] : tensor<3x3xi8>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.add %[[D]], %[[E]] : tensor<3x3xi8>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.add %[[F]], %[[G]] : tensor<3x3xi8>
// CHECK-NEXT:    return %[[H]] : tensor<3x3xi8>
func.func @main(%a: tensor<1x2xi8>, %b: tensor<2x1xi8>) -> tensor<3x3xi8> {
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %0 = stablehlo.pad %a, %zero, low = [0, 0], high = [2, 1], interior = [0, 0] : (tensor<1x2xi8>, tensor<i8>) -> tensor<3x3xi8>
  %1 = stablehlo.pad %b, %zero, low = [0, 2], high = [1, 0], interior = [0, 0] : (tensor<2x1xi8>, tensor<i8>) -> tensor<3x3xi8>
  %2 = stablehlo.pad %a, %zero, low = [2, 1], high = [0, 0], interior = [0, 0] : (tensor<1x2xi8>, tensor<i8>) -> tensor<3x3xi8>
  %3 = stablehlo.pad %b, %zero, low = [1, 0], high = [0, 2], interior = [0, 0] : (tensor<2x1xi8>, tensor<i8>) -> tensor<3x3xi8>
  %4 = stablehlo.add %0, %1 : tensor<3x3xi8>
  %5 = stablehlo.add %2, %3 : tensor<3x3xi8>
  %6 = stablehlo.add %4, %5 : tensor<3x3xi8>
  return %6 : tensor<3x3xi8>
}

// -----

// An addition that is marked for XLA stays: it would lose its mark.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<4xf32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg0, %[[A]], low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.pad %arg1, %[[A]], low = [2], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.add %[[B]], %[[C]] {xgpu.fallback = "what follows a product"} : tensor<6xf32>
// CHECK-NEXT:    return %[[D]] : tensor<6xf32>
func.func @main(%x: tensor<2xf32>, %y: tensor<4xf32>) -> tensor<6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.pad %y, %zero, low = [2], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.add %0, %1 {xgpu.fallback = "what follows a product"} : tensor<6xf32>
  return %2 : tensor<6xf32>
}

// -----

// Zeros that are added to one array stay: they decide the sign of a zero.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<6xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.pad %arg0, %[[B]], low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.pad %arg1, %[[B]], low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[A]], %[[C]] : tensor<6xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.add %[[E]], %[[D]] : tensor<6xf32>
// CHECK-NEXT:    return %[[F]] : tensor<6xf32>
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<6xf32> {
  %zeros = stablehlo.constant dense<0.0> : tensor<6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.pad %y, %zero, low = [0], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.add %zeros, %0 : tensor<6xf32>
  %3 = stablehlo.add %2, %1 : tensor<6xf32>
  return %3 : tensor<6xf32>
}

// -----

// The gradient of a slice of a slice: zeros are added to each part once.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x1xf32>, %arg1: tensor<8x1xf32>, %arg2: tensor<8x1xf32>) -> tensor<8x3xf32>
// CHECK:         %[[A:.*]] = stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
// CHECK-NOT:     stablehlo.add %[[A]]
// CHECK:         stablehlo.concatenate %{{.*}}, %[[A]], dim = 1 : (tensor<8x1xf32>, tensor<8x2xf32>) -> tensor<8x3xf32>
func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x1xf32>, %z: tensor<8x1xf32>) -> tensor<8x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %y, %zero, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x2xf32>
  %1 = stablehlo.pad %z, %zero, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x2xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x2xf32>
  %3 = stablehlo.pad %2, %zero, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x3xf32>
  %4 = stablehlo.pad %x, %zero, low = [0, 0], high = [0, 2], interior = [0, 0] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x3xf32>
  %5 = stablehlo.add %3, %4 : tensor<8x3xf32>
  return %5 : tensor<8x3xf32>
}
