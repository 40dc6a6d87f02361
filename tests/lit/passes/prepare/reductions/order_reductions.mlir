// RUN: xgpu-opt %s -p order-reductions --split-input-file | FileCheck %s

// Rows are summed up, as they lie in memory: the two transposes cancel.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x512xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reduce(%arg0 init: %[[A]]) applies stablehlo.add across dimensions = [1] : (tensor<64x512xf32>, tensor<f32>) -> tensor<64xf32>
// CHECK-NEXT:    return %[[D]] : tensor<64xf32>
func.func @main(%x: tensor<64x512xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
  %0 = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Columns that lie so in memory.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x64xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reduce(%arg0 init: %[[A]]) applies stablehlo.add across dimensions = [0] : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
// CHECK-NEXT:    return %[[B]] : tensor<64xf32>
func.func @main(%x: tensor<512x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Each of two rows is read in another way, so a warp has elements of one row, not of both.

// CHECK-LABEL: func.func @main(%arg0: tensor<512xf32>, %arg1: tensor<64xf32>) -> tensor<64x2xf32>
// CHECK:         %[[ROWS:.*]] = stablehlo.add
// CHECK-NEXT:    %[[SUMS:.*]] = stablehlo.reduce(%[[ROWS]] init: %{{.*}}) applies stablehlo.add across dimensions = [2] : (tensor<2x64x512xf32>, tensor<f32>) -> tensor<2x64xf32>
// CHECK-NEXT:    %[[BACK:.*]] = stablehlo.transpose %[[SUMS]], dims = [1, 0] : (tensor<2x64xf32>) -> tensor<64x2xf32>
// CHECK-NEXT:    return %[[BACK]]
func.func @main(%x: tensor<512xf32>, %y: tensor<64xf32>) -> tensor<64x2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [2] : (tensor<512xf32>) -> tensor<1x64x512xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<64xf32>) -> tensor<1x64x512xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<1x64x512xf32>
  %3 = stablehlo.pad %2, %zero, low = [0, 0, 0], high = [1, 0, 0], interior = [0, 0, 0] : (tensor<1x64x512xf32>, tensor<f32>) -> tensor<2x64x512xf32>
  %4 = stablehlo.pad %1, %zero, low = [1, 0, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<1x64x512xf32>, tensor<f32>) -> tensor<2x64x512xf32>
  %5 = stablehlo.add %3, %4 : tensor<2x64x512xf32>
  %6 = stablehlo.transpose %5, dims = [1, 2, 0] : (tensor<2x64x512xf32>) -> tensor<64x512x2xf32>
  %7 = stablehlo.reduce(%6 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x512x2xf32>, tensor<f32>) -> tensor<64x2xf32>
  return %7 : tensor<64x2xf32>
}

// -----

// Arrays of half the size lie in memory as they do: neighbours there are read together.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x8xf32>, %arg1: tensor<512x8xf32>) -> tensor<16xf32>
// CHECK:         stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<512x16xf32>, tensor<f32>) -> tensor<16xf32>
func.func @main(%x: tensor<512x8xf32>, %y: tensor<512x8xf32>) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<512x8xf32>, tensor<512x8xf32>) -> tensor<512x16xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x16xf32>, tensor<f32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// -----

// Rows of 64 elements are read as fast in any order, and their sums stay in the one that readers have; rows of 16
// are not, as a warp reads several of them.

// CHECK-LABEL: func.func @main(%arg0: tensor<32x16x64xf32>, %arg1: tensor<32x16x16xf32>)
// CHECK:         %[[T:.*]] = stablehlo.transpose %arg0, dims = [1, 0, 2]
// CHECK:         stablehlo.reduce(%[[T]] init: %{{.*}}) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
// CHECK:         %[[SUMS:.*]] = stablehlo.reduce(%arg1 init: %{{.*}}) applies stablehlo.add across dimensions = [2] : (tensor<32x16x16xf32>, tensor<f32>) -> tensor<32x16xf32>
// CHECK-NEXT:    stablehlo.transpose %[[SUMS]], dims = [1, 0]
func.func @main(%x: tensor<32x16x64xf32>, %y: tensor<32x16x16xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<32x16x64xf32>) -> tensor<16x32x64xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
  %2 = stablehlo.transpose %y, dims = [1, 0, 2] : (tensor<32x16x16xf32>) -> tensor<16x32x16xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<16x32x16xf32>, tensor<f32>) -> tensor<16x32xf32>
  return %1, %3 : tensor<16x32xf32>, tensor<16x32xf32>
}
