// RUN: xgpu-opt %s -p simplify-whole-slices --split-input-file | FileCheck %s

// All of the second dimension is taken, so that the slice starts at 0 there.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dynamic_slice %arg0, %arg1, %[[A]], sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<1x8xf32>
func.func @main(%x: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<1x8xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}

// -----

// A slice of a whole array is the array, and an array that is updated as a whole is the update.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT:    return %arg0, %arg1 : tensor<8xf32>, tensor<8xf32>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [8] : (tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
  %1 = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// An update of all of the first dimension.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4x2xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dynamic_update_slice %arg0, %arg1, %[[A]], %arg3 : (tensor<4x8xf32>, tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<4x8xf32>
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<4x8xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %y, %i, %j : (tensor<4x8xf32>, tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A pad that adds nothing and a slice of all elements move none; one that cuts off as much as it adds does.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.pad %arg0, %arg1, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
// CHECK-NEXT:    return %arg0, %[[A]] : tensor<4x8xf32>, tensor<4x8xf32>
func.func @main(%x: tensor<4x8xf32>, %zero: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.pad %x, %zero, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = stablehlo.slice %0 [0:4, 0:8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.pad %x, %zero, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// With as many elements, but every other one of them.

// CHECK-LABEL: func.func @main(%arg0: tensor<3xf32>, %arg1: tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.pad %arg0, %arg1, low = [0], high = [-2], interior = [1] : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT:    return %[[A]] : tensor<3xf32>
func.func @main(%x: tensor<3xf32>, %zero: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.pad %x, %zero, low = [0], high = [-2], interior = [1] : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
