// RUN: xgpu-opt %s -p 'move-transposes{least-bytes=1}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p move-transposes --split-input-file | FileCheck %s --check-prefix=SMALL

// SMALL-COUNT-2: stablehlo.transpose

// What lies between two transposes is computed in the order in which it is read and wanted, with all its attributes.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<i32>, %arg3: tensor<f32>) -> tensor<8x6xf32>
// CHECK-NEXT:    %[[Z:.*]] = stablehlo.constant dense<0>
// CHECK-NEXT:    %[[S:.*]] = stablehlo.slice %arg0 [2:8, 1:6:2] : (tensor<8x6xf32>) -> tensor<6x3xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %[[S]], %[[S]], dim = 1 : (tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x6xf32>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.pad %[[C]], %arg3, low = [0, 1], high = [2, 0], interior = [0, 0] : (tensor<6x6xf32>, tensor<f32>) -> tensor<8x7xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reverse %[[P]], dims = [1] : tensor<8x7xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.dynamic_slice %[[R]], %[[Z]], %arg2, sizes = [8, 6] : (tensor<8x7xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.add %[[D]], %[[B]] : tensor<8x6xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.iota dim = 1 : tensor<8x6xf32>
// CHECK-NEXT:    %[[M:.*]] = stablehlo.multiply %[[A]], %[[I]] : tensor<8x6xf32>
// CHECK-NEXT:    %[[U:.*]] = stablehlo.dynamic_update_slice %[[M]], %[[S]], %[[Z]], %arg2 : (tensor<8x6xf32>, tensor<6x3xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
// CHECK-NEXT:    %[[ONE:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<8x6xf32>
// CHECK-NEXT:    %[[L:.*]] = stablehlo.subtract %[[U]], %[[ONE]] : tensor<8x6xf32>
// CHECK-NEXT:    return %[[L]] : tensor<8x6xf32>
func.func @main(%x: tensor<8x6xf32>, %b: tensor<6xf32>, %n: tensor<i32>, %f: tensor<f32>) -> tensor<8x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %1 = stablehlo.slice %0 [1:6:2, 2:8] : (tensor<6x8xf32>) -> tensor<3x6xf32>
  %2 = stablehlo.concatenate %1, %1, dim = 0 : (tensor<3x6xf32>, tensor<3x6xf32>) -> tensor<6x6xf32>
  %3 = stablehlo.pad %2, %f, low = [1, 0], high = [0, 2], interior = [0, 0] : (tensor<6x6xf32>, tensor<f32>) -> tensor<7x8xf32>
  %4 = stablehlo.reverse %3, dims = [0] : tensor<7x8xf32>
  %5 = stablehlo.dynamic_slice %4, %n, %zero, sizes = [6, 8] : (tensor<7x8xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
  %6 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<6xf32>) -> tensor<6x8xf32>
  %7 = stablehlo.add %5, %6 : tensor<6x8xf32>
  %8 = stablehlo.iota dim = 0 : tensor<6x8xf32>
  %9 = stablehlo.multiply %7, %8 : tensor<6x8xf32>
  %10 = stablehlo.dynamic_update_slice %9, %1, %n, %zero : (tensor<6x8xf32>, tensor<3x6xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<6x8xf32>
  %11 = stablehlo.subtract %10, %one : tensor<6x8xf32>
  %12 = stablehlo.transpose %11, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
  return %12 : tensor<8x6xf32>
}

// -----

// What is read or wanted in the program's order is transposed; a sum takes any order, its result that of what is left.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x5x6xf32>, %arg1: tensor<5x6x4xf32>)
// CHECK-NEXT:    %[[Z:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg1, dims = [2, 0, 1] : (tensor<5x6x4xf32>) -> tensor<4x5x6xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.add %arg0, %[[T]] : tensor<4x5x6xf32>
// CHECK-NEXT:    %[[S:.*]] = stablehlo.reduce(%[[A]] init: %[[Z]]) applies stablehlo.add across dimensions = [0] : (tensor<4x5x6xf32>, tensor<f32>) -> tensor<5x6xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.exponential %[[A]] : tensor<4x5x6xf32>
// CHECK-NEXT:    %[[N:.*]] = stablehlo.negate %[[A]] : tensor<4x5x6xf32>
// CHECK-NEXT:    return %[[S]], %[[E]], %[[N]]
func.func @main(%x: tensor<4x5x6xf32>, %y: tensor<5x6x4xf32>) -> (tensor<5x6xf32>, tensor<4x5x6xf32>, tensor<4x5x6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<4x5x6xf32>) -> tensor<5x6x4xf32>
  %1 = stablehlo.add %0, %y : tensor<5x6x4xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<5x6x4xf32>, tensor<f32>) -> tensor<5x6xf32>
  %3 = stablehlo.exponential %1 : tensor<5x6x4xf32>
  %4 = stablehlo.transpose %3, dims = [2, 0, 1] : (tensor<5x6x4xf32>) -> tensor<4x5x6xf32>
  %5 = stablehlo.negate %1 : tensor<5x6x4xf32>
  %6 = stablehlo.transpose %5, dims = [2, 0, 1] : (tensor<5x6x4xf32>) -> tensor<4x5x6xf32>
  return %2, %4, %6 : tensor<5x6xf32>, tensor<4x5x6xf32>, tensor<4x5x6xf32>
}

// -----

// What would be transposed elsewhere instead stays, and so do neighbours that a concatenation would be taken apart from.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg0, dims = [1, 0]
// CHECK-NEXT:    %[[A:.*]] = stablehlo.add %[[T]], %arg1
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %arg2, %arg2, dim = 0
// CHECK-NEXT:    %[[D:.*]] = stablehlo.transpose %[[C]], dims = [1, 0]
// CHECK-NEXT:    return %[[A]], %[[D]]
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>, %z: tensor<1x8xf32>) -> (tensor<8x4xf32>, tensor<8x2xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.add %0, %y : tensor<8x4xf32>
  %2 = stablehlo.concatenate %z, %z, dim = 0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<2x8xf32>) -> tensor<8x2xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x2xf32>
}

// -----

// A branch takes values in the program's order, also where it transposes them.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[E:.*]] = stablehlo.exponential %arg1 : tensor<8x4xf32>
// CHECK-NEXT:    %[[BACK:.*]] = stablehlo.transpose %[[E]], dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    "stablehlo.case"(%arg0) ({
// CHECK-NEXT:      stablehlo.transpose %[[BACK]], dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK:         %[[N:.*]] = stablehlo.negate %[[E]] : tensor<8x4xf32>
func.func @main(%n: tensor<i32>, %x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.exponential %0 : tensor<4x8xf32>
  %2 = "stablehlo.case"(%n) ({
    %4 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    stablehlo.return %4 : tensor<8x4xf32>
  }, {
    stablehlo.return %x : tensor<8x4xf32>
  }) : (tensor<i32>) -> tensor<8x4xf32>
  %3 = stablehlo.negate %1 : tensor<4x8xf32>
  %5 = stablehlo.transpose %3, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %6 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %7 = stablehlo.add %5, %6 : tensor<8x4xf32>
  return %2, %7 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// What a concatenation reads would be transposed without tiles: the transpose stays after it.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[E:.*]] = stablehlo.exponential %arg0
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %arg0, %[[E]], dim = 1
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %[[C]], dims = [1, 0]
// CHECK-NEXT:    return %[[T]]
func.func @main(%x: tensor<4x8xf32>) -> tensor<16x4xf32> {
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  %1 = stablehlo.concatenate %x, %0, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
  return %2 : tensor<16x4xf32>
}

// -----

// Windows are read in the order of the array: moved there, each of their nine reads would be of another sector.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.transpose
// CHECK:         "stablehlo.reduce_window"(%arg0, %{{.*}}) <{
// CHECK-SAME:      padding = dense<{{\[\[}}0, 0], [1, 1], [0, 2]]> : tensor<3x2xi64>
// CHECK-SAME:      window_dimensions = array<i64: 1, 3, 3>, window_strides = array<i64: 1, 1, 2>
// CHECK:         (tensor<64x128x128xf32>, tensor<f32>) -> tensor<64x128x64xf32>
// CHECK-NOT:     stablehlo.transpose
func.func @main(%x: tensor<64x128x128xf32>) -> tensor<64x128x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<64x128x128xf32>) -> tensor<128x128x64xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{padding = dense<[[1, 1], [0, 2], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 3, 3, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<128x128x64xf32>, tensor<f32>) -> tensor<128x64x64xf32>
  %2 = stablehlo.transpose %1, dims = [2, 0, 1] : (tensor<128x64x64xf32>) -> tensor<64x128x64xf32>
  return %2 : tensor<64x128x64xf32>
}

// -----

// All results of a window have one order, also where nothing that it reads has one: here the one that is transposed.
// CHECK-LABEL: func.func @main
// CHECK:         %[[R:.*]]:2 = "stablehlo.reduce_window"
// CHECK-SAME:      window_dimensions = array<i64: 3, 1>
// CHECK:         (tensor<766x512xf32>, tensor<766x512xf16>)
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %[[R]]#1, dims = [1, 0]
// CHECK-NEXT:    return %[[R]]#0, %[[T]]
func.func @main() -> (tensor<766x512xf32>, tensor<512x766xf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %x = stablehlo.iota dim = 0 : tensor<512x768xf32>
  %half = stablehlo.constant dense<0.0> : tensor<f16>
  %y = stablehlo.iota dim = 1 : tensor<512x768xf16>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %zero, %half) <{window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f16>, %c: tensor<f32>, %d: tensor<f16>):
    %2 = stablehlo.add %a, %c : tensor<f32>
    %3 = stablehlo.add %b, %d : tensor<f16>
    stablehlo.return %2, %3 : tensor<f32>, tensor<f16>
  }) : (tensor<512x768xf32>, tensor<512x768xf16>, tensor<f32>, tensor<f16>) -> (tensor<512x766xf32>, tensor<512x766xf16>)
  %1 = stablehlo.transpose %0#0, dims = [1, 0] : (tensor<512x766xf32>) -> tensor<766x512xf32>
  return %1, %0#1 : tensor<766x512xf32>, tensor<512x766xf16>
}

// -----

// Broadcasts that only transpose are transposes. The differences are computed in the order in which they are read, of one
// transposed array, and the mask is made in that order.
// CHECK-LABEL: func.func @main(%arg0: tensor<8x256x32xf32>) -> tensor<8x32x256x256xf32>
// CHECK-DAG:     %[[COLUMN:.*]] = stablehlo.iota dim = 1 : tensor<256x256xi32>
// CHECK-DAG:     %[[ROW:.*]] = stablehlo.iota dim = 0 : tensor<256x256xi32>
// CHECK-DAG:     stablehlo.compare GE, %[[COLUMN]], %[[ROW]]
// CHECK-DAG:     stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<8x256x32xf32>) -> tensor<8x32x256xf32>
// CHECK-NOT:     stablehlo.transpose
// CHECK:         return
func.func @main(%x: tensor<8x256x32xf32>) -> tensor<8x32x256x256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<8x256x256x32xf32>
  %i = stablehlo.iota dim = 0 : tensor<256x256xi32>
  %j = stablehlo.iota dim = 1 : tensor<256x256xi32>
  %m = stablehlo.compare GE, %i, %j, SIGNED : (tensor<256x256xi32>, tensor<256x256xi32>) -> tensor<256x256xi1>
  %mask = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<256x256xi1>) -> tensor<8x256x256x32xi1>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1, 3] : (tensor<8x256x32xf32>) -> tensor<8x256x256x32xf32>
  %1 = stablehlo.broadcast_in_dim %x, dims = [0, 2, 3] : (tensor<8x256x32xf32>) -> tensor<8x256x256x32xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<8x256x256x32xf32>
  %3 = stablehlo.exponential %2 : tensor<8x256x256x32xf32>
  %4 = stablehlo.select %mask, %3, %zero : tensor<8x256x256x32xi1>, tensor<8x256x256x32xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 3, 2, 1] : (tensor<8x256x256x32xf32>) -> tensor<8x32x256x256xf32>
  return %5 : tensor<8x32x256x256xf32>
}

// -----

// One that spreads a smaller array does not transpose what is large.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>) -> tensor<2x8x3x4xf32>
// CHECK-NEXT:    stablehlo.broadcast_in_dim %arg0, dims = [3, 1]
func.func @main(%x: tensor<4x8xf32>) -> tensor<2x8x3x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [3, 1] : (tensor<4x8xf32>) -> tensor<2x8x3x4xf32>
  return %0 : tensor<2x8x3x4xf32>
}

// -----

// Reshapes between orders that follow from each other move nothing: what splits a dimension has its parts in its place.

// CHECK-LABEL: func.func @main(%arg0: tensor<16x8x6xf32>, %arg1: tensor<2x3xf32>) -> tensor<16x8x6xf32>
// CHECK-NEXT:    %[[S:.*]] = stablehlo.reshape %arg0 : (tensor<16x8x6xf32>) -> tensor<16x8x2x3xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [2, 3] : (tensor<2x3xf32>) -> tensor<16x8x2x3xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.add %[[S]], %[[B]] : tensor<16x8x2x3xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[A]] : (tensor<16x8x2x3xf32>) -> tensor<16x8x6xf32>
// CHECK-NEXT:    return %[[R]]
func.func @main(%x: tensor<16x8x6xf32>, %b: tensor<2x3xf32>) -> tensor<16x8x6xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<16x8x6xf32>) -> tensor<16x6x8xf32>
  %1 = stablehlo.reshape %0 : (tensor<16x6x8xf32>) -> tensor<16x2x3x8xf32>
  %2 = stablehlo.broadcast_in_dim %b, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<16x2x3x8xf32>
  %3 = stablehlo.add %1, %2 : tensor<16x2x3x8xf32>
  %4 = stablehlo.reshape %3 : (tensor<16x2x3x8xf32>) -> tensor<16x6x8xf32>
  %5 = stablehlo.transpose %4, dims = [0, 2, 1] : (tensor<16x6x8xf32>) -> tensor<16x8x6xf32>
  return %5 : tensor<16x8x6xf32>
}

// -----

// A reshape that merges dimensions across others is given them in the program's order.

// CHECK-LABEL: func.func @main(%arg0: tensor<16x8x6xf32>) -> tensor<16x48xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.exponential %arg0 : tensor<16x8x6xf32>
// CHECK-NEXT:    %[[S:.*]] = stablehlo.add %[[E]], %arg0 : tensor<16x8x6xf32>
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %[[S]], dims = [0, 2, 1] : (tensor<16x8x6xf32>) -> tensor<16x6x8xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[T]] : (tensor<16x6x8xf32>) -> tensor<16x48xf32>
// CHECK-NEXT:    return %[[R]]
func.func @main(%x: tensor<16x8x6xf32>) -> tensor<16x48xf32> {
  %0 = stablehlo.exponential %x : tensor<16x8x6xf32>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<16x8x6xf32>) -> tensor<16x6x8xf32>
  %2 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<16x8x6xf32>) -> tensor<16x6x8xf32>
  %3 = stablehlo.add %1, %2 : tensor<16x6x8xf32>
  %4 = stablehlo.reshape %3 : (tensor<16x6x8xf32>) -> tensor<16x48xf32>
  return %4 : tensor<16x48xf32>
}

// -----

// A product reads what is dequantised by groups in the order in which it lies: its rows are summed instead of its columns.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xbf16>, %arg1: tensor<6x8xi8>, %arg2: tensor<2x6xbf16>)
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convert %arg1 : (tensor<6x8xi8>) -> tensor<6x8xbf16>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[C]] : (tensor<6x8xbf16>) -> tensor<6x2x4xbf16>
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<2x6xbf16>) -> tensor<6x2xbf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[T]], dims = [0, 1] : (tensor<6x2xbf16>) -> tensor<6x2x4xbf16>
// CHECK-NEXT:    %[[M:.*]] = stablehlo.multiply %[[R]], %[[B]] : tensor<6x2x4xbf16>
// CHECK-NEXT:    %[[W:.*]] = stablehlo.reshape %[[M]] : (tensor<6x2x4xbf16>) -> tensor<6x8xbf16>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.dot_general %arg0, %[[W]], contracting_dims = [1] x [1], precision = [DEFAULT, HIGHEST] : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xf32>
// CHECK-NEXT:    return %[[P]]
func.func @main(%x: tensor<4x8xbf16>, %q: tensor<6x8xi8>, %s: tensor<2x6xbf16>) -> tensor<4x6xf32> {
  %0 = stablehlo.transpose %q, dims = [1, 0] : (tensor<6x8xi8>) -> tensor<8x6xi8>
  %1 = stablehlo.convert %0 : (tensor<8x6xi8>) -> tensor<8x6xbf16>
  %2 = stablehlo.reshape %1 : (tensor<8x6xbf16>) -> tensor<2x4x6xbf16>
  %3 = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<2x6xbf16>) -> tensor<2x4x6xbf16>
  %4 = stablehlo.multiply %2, %3 : tensor<2x4x6xbf16>
  %5 = stablehlo.reshape %4 : (tensor<2x4x6xbf16>) -> tensor<8x6xbf16>
  %6 = stablehlo.dot_general %x, %5, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xf32>
  return %6 : tensor<4x6xf32>
}

// -----

// Both operands may be the same array, and batches of matrices stay batches.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x8x6xf32>)
// CHECK-NEXT:    %[[E:.*]] = stablehlo.exponential %arg0 : tensor<3x8x6xf32>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.dot_general %[[E]], %[[E]], batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x8x6xf32>, tensor<3x8x6xf32>) -> tensor<3x6x6xf32>
// CHECK-NEXT:    return %[[P]]
func.func @main(%x: tensor<3x8x6xf32>) -> tensor<3x6x6xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<3x8x6xf32>) -> tensor<3x6x8xf32>
  %1 = stablehlo.exponential %0 : tensor<3x6x8xf32>
  %2 = stablehlo.dot_general %1, %1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<3x6x8xf32>, tensor<3x6x8xf32>) -> tensor<3x6x6xf32>
  return %2 : tensor<3x6x6xf32>
}

// -----

// A batch that is not first, and elements of 8 bits, are transposed as before.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x3x6xf32>, %arg1: tensor<6x8xi8>)
// CHECK:         stablehlo.dot_general %{{.*}}, %{{.*}}, batching_dims = [0] x [0], contracting_dims = [1] x [1] :
// CHECK:         stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [0] x [0] :
func.func @main(%x: tensor<8x3x6xf32>, %y: tensor<6x8xi8>) -> (tensor<3x6x6xf32>, tensor<6x6xi32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<8x3x6xf32>) -> tensor<3x8x6xf32>
  %1 = stablehlo.exponential %0 : tensor<3x8x6xf32>
  %2 = stablehlo.dot_general %1, %1, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x8x6xf32>, tensor<3x8x6xf32>) -> tensor<3x6x6xf32>
  %3 = stablehlo.transpose %y, dims = [1, 0] : (tensor<6x8xi8>) -> tensor<8x6xi8>
  %4 = stablehlo.negate %3 : tensor<8x6xi8>
  %5 = stablehlo.dot_general %4, %4, contracting_dims = [0] x [0] : (tensor<8x6xi8>, tensor<8x6xi8>) -> tensor<6x6xi32>
  return %2, %5 : tensor<3x6x6xf32>, tensor<6x6xi32>
}

// -----

// What is read elsewhere is transposed last, also behind reshapes by whatever name.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x48xf32>, %arg1: tensor<64x48xf32>) -> tensor<2x48x64xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reverse %arg1, dims = [1] : tensor<64x48xf32>
// CHECK-NEXT:    %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<64x48xf32>) -> tensor<1x64x48xf32>
// CHECK-NEXT:    %[[Y:.*]] = stablehlo.reshape %[[R]] : (tensor<64x48xf32>) -> tensor<1x64x48xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.concatenate %[[X]], %[[Y]], dim = 0
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %[[C]], dims = [0, 2, 1] : (tensor<2x64x48xf32>) -> tensor<2x48x64xf32>
// CHECK-NEXT:    return %[[T]]
func.func @main(%x: tensor<64x48xf32>, %y: tensor<64x48xf32>) -> tensor<2x48x64xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x48xf32>) -> tensor<48x64xf32>
  %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<64x48xf32>) -> tensor<48x64xf32>
  %2 = stablehlo.reverse %1, dims = [0] : tensor<48x64xf32>
  %3 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<48x64xf32>) -> tensor<1x48x64xf32>
  %4 = stablehlo.broadcast_in_dim %2, dims = [1, 2] : (tensor<48x64xf32>) -> tensor<1x48x64xf32>
  %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1x48x64xf32>, tensor<1x48x64xf32>) -> tensor<2x48x64xf32>
  return %5 : tensor<2x48x64xf32>
}

// -----

// A gather takes rows of what has its columns as rows, and a scatter adds to them.

// CHECK-LABEL: func.func @main(%arg0: tensor<128x96xf32>, %arg1: tensor<48x1xi32>) -> tensor<128x96xf32>
// CHECK-NOT:     transpose
// CHECK:         %[[G:.*]] = "stablehlo.gather"(%arg0, %arg1)
// CHECK-SAME:      offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0]
// CHECK-SAME:      slice_sizes = array<i64: 1, 96>
// CHECK:         %[[S:.*]] = stablehlo.sine %[[G]] : tensor<48x96xf32>
// CHECK:         "stablehlo.scatter"(%arg0, %arg1, %[[S]])
// CHECK-SAME:      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]
// CHECK-NOT:     transpose
func.func @main(%x: tensor<128x96xf32>, %i: tensor<48x1xi32>) -> tensor<128x96xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<128x96xf32>) -> tensor<96x128xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 96, 1>}> : (tensor<96x128xf32>, tensor<48x1xi32>) -> tensor<96x48xf32>
  %2 = stablehlo.sine %1 : tensor<96x48xf32>
  %3 = "stablehlo.scatter"(%0, %i, %2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<96x128xf32>, tensor<48x1xi32>, tensor<96x48xf32>) -> tensor<96x128xf32>
  %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<96x128xf32>) -> tensor<128x96xf32>
  return %4 : tensor<128x96xf32>
}

// -----

// Rows that are repeated and summed again are columns: a broadcast's new dimension stays beside the one that a reshape
// merges it with.

// CHECK-LABEL: func.func @main(%arg0: tensor<128x96xf32>) -> tensor<128x96xf32>
// CHECK-NEXT:    %[[ZERO:.*]] = stablehlo.constant
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<128x96xf32>) -> tensor<128x3x96xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.reshape %[[B]] : (tensor<128x3x96xf32>) -> tensor<128x288xf32>
// CHECK-NEXT:    %[[S:.*]] = stablehlo.sine %[[R]] : tensor<128x288xf32>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.reshape %[[S]] : (tensor<128x288xf32>) -> tensor<128x3x96xf32>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.reduce(%[[P]] init: %[[ZERO]]) applies stablehlo.add across dimensions = [1]
// CHECK-NEXT:    return %[[SUM]]
func.func @main(%x: tensor<128x96xf32>) -> tensor<128x96xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<128x96xf32>) -> tensor<96x128xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<96x128xf32>) -> tensor<3x96x128xf32>
  %2 = stablehlo.reshape %1 : (tensor<3x96x128xf32>) -> tensor<288x128xf32>
  %3 = stablehlo.sine %2 : tensor<288x128xf32>
  %4 = stablehlo.reshape %3 : (tensor<288x128xf32>) -> tensor<3x96x128xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3x96x128xf32>, tensor<f32>) -> tensor<96x128xf32>
  %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<96x128xf32>) -> tensor<128x96xf32>
  return %6 : tensor<128x96xf32>
}

// -----

// The components of an index go to the dimensions that they went to; with them a batch of the indices.

// CHECK-LABEL: func.func @main(%arg0: tensor<5x128x96xf32>, %arg1: tensor<48x5x2xi32>) -> tensor<48x5xf32>
// CHECK-NEXT:    %[[G:.*]] = "stablehlo.gather"(%arg0, %arg1)
// CHECK-SAME:      collapsed_slice_dims = [1, 2], operand_batching_dims = [0], start_indices_batching_dims = [1], start_index_map = [1, 2]
// CHECK-SAME:      slice_sizes = array<i64: 1, 1, 1>
// CHECK-NEXT:    return %[[G]]
func.func @main(%x: tensor<5x128x96xf32>, %i: tensor<48x5x2xi32>) -> tensor<48x5xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 1, 0] : (tensor<5x128x96xf32>) -> tensor<96x128x5xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], operand_batching_dims = [2], start_indices_batching_dims = [1], start_index_map = [1, 0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<96x128x5xf32>, tensor<48x5x2xi32>) -> tensor<48x5xf32>
  return %1 : tensor<48x5xf32>
}
