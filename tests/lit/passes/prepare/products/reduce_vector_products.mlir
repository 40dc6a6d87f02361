// RUN: xgpu-opt %s -p reduce-vector-products --split-input-file | FileCheck %s

// The matrix stays as it is, the vector is broadcast to it.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[V:.*]]: tensor<1x256xbf16>, %[[W:.*]]: tensor<256x512xbf16>)
// CHECK-NEXT:    %[[VWIDE:.*]] = stablehlo.convert %[[V]]
// CHECK-NEXT:    %[[FLAT:.*]] = stablehlo.reshape %[[VWIDE]] : (tensor<1x256xf32>) -> tensor<256xf32>
// CHECK-NEXT:    %[[ALL:.*]] = stablehlo.broadcast_in_dim %[[FLAT]], dims = [0] : (tensor<256xf32>) -> tensor<256x512xf32>
// CHECK-NEXT:    %[[WIDE:.*]] = stablehlo.convert %[[W]] : (tensor<256x512xbf16>) -> tensor<256x512xf32>
// CHECK-NEXT:    %[[PRODUCTS:.*]] = stablehlo.multiply %[[ALL]], %[[WIDE]]
// CHECK-NEXT:    %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.reduce(%[[PRODUCTS]] init: %[[ZERO]]) applies stablehlo.add across dimensions = [0]
// CHECK-NEXT:    %[[ROW:.*]] = stablehlo.reshape %[[SUM]] : (tensor<512xf32>) -> tensor<1x512xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.convert %[[ROW]] : (tensor<1x512xf32>) -> tensor<1x512xbf16>
// CHECK-NEXT:    return %[[R]]
func.func @main(%v: tensor<1x256xbf16>, %w: tensor<256x512xbf16>) -> tensor<1x512xbf16> {
  %0 = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0] : (tensor<1x256xbf16>, tensor<256x512xbf16>) -> tensor<1x512xbf16>
  return %0 : tensor<1x512xbf16>
}

// -----

// A transposed matrix is read as it is in memory.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[W:.*]]: tensor<256x8x512xf32>, %[[V:.*]]: tensor<8x256xf32>)
// CHECK:         %[[ALL:.*]] = stablehlo.broadcast_in_dim %[[V]], dims = [1, 0] : (tensor<8x256xf32>) -> tensor<256x8x512xf32>
// CHECK-NEXT:    %[[PRODUCTS:.*]] = stablehlo.multiply %[[W]], %[[ALL]]
// CHECK:         stablehlo.reduce(%[[PRODUCTS]] init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<256x8x512xf32>, tensor<f32>) -> tensor<8x512xf32>
func.func @main(%w: tensor<256x8x512xf32>, %v: tensor<8x256xf32>) -> tensor<8x512xf32> {
  %t = stablehlo.transpose %w, dims = [1, 2, 0] : (tensor<256x8x512xf32>) -> tensor<8x512x256xf32>
  %0 = stablehlo.dot_general %t, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x512x256xf32>, tensor<8x256xf32>) -> tensor<8x512xf32>
  return %0 : tensor<8x512xf32>
}

// -----

// Nothing is summed.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<2000xf32>, %[[Y:.*]]: tensor<1x900xf32>)
// CHECK-NEXT:    %[[COLUMN:.*]] = stablehlo.reshape %[[X]]
// CHECK-NEXT:    %[[BACK:.*]] = stablehlo.reshape %[[COLUMN]] : (tensor<2000x1xf32>) -> tensor<2000xf32>
// CHECK-NEXT:    %[[ROWS:.*]] = stablehlo.broadcast_in_dim %[[BACK]], dims = [0] : (tensor<2000xf32>) -> tensor<2000x900xf32>
// CHECK-NEXT:    %[[FLAT:.*]] = stablehlo.reshape %[[Y]]
// CHECK-NEXT:    %[[COLUMNS:.*]] = stablehlo.broadcast_in_dim %[[FLAT]], dims = [1] : (tensor<900xf32>) -> tensor<2000x900xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.multiply %[[ROWS]], %[[COLUMNS]]
// CHECK-NEXT:    return %[[R]]
func.func @main(%x: tensor<2000xf32>, %y: tensor<1x900xf32>) -> tensor<2000x900xf32> {
  %c = stablehlo.reshape %x : (tensor<2000xf32>) -> tensor<2000x1xf32>
  %0 = stablehlo.dot_general %c, %y, contracting_dims = [1] x [0] : (tensor<2000x1xf32>, tensor<1x900xf32>) -> tensor<2000x900xf32>
  return %0 : tensor<2000x900xf32>
}

// -----

// Matrices, a large one, and what kernels compute anyway.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: stablehlo.dot_general
// CHECK-NOT:     stablehlo.reduce
func.func @main(%x: tensor<64x64xf32>, %w: tensor<4096x4096xbf16>, %v: tensor<4096xbf16>, %s: tensor<8xf32>, %m: tensor<8x8xf32>) -> (tensor<64x64xf32>, tensor<4096xbf16>, tensor<8xf32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096xbf16>) -> tensor<4096xbf16>
  %3 = stablehlo.dot_general %m, %s, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %3 : tensor<64x64xf32>, tensor<4096xbf16>, tensor<8xf32>
}

// -----

// Many small ones are more elements together.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.dot_general
// CHECK:         stablehlo.reduce
func.func @main(%w: tensor<8192x10x128xf32>, %v: tensor<8192x128xf32>) -> tensor<8192x10xf32> {
  %0 = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8192x10x128xf32>, tensor<8192x128xf32>) -> tensor<8192x10xf32>
  return %0 : tensor<8192x10xf32>
}

// -----

// A product that sums nothing is a multiplication, however small it is: what follows is computed with it.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x5xf32>)
// CHECK-NOT:     dot_general
// CHECK:         %[[A:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<3x4xf32>) -> tensor<3x4x5xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<3x5xf32>) -> tensor<3x4x5xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.multiply %[[A]], %[[B]] : tensor<3x4x5xf32>
// CHECK-NEXT:    return %[[C]]
func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x5xf32>) -> tensor<3x4x5xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x4x5xf32>
  return %0 : tensor<3x4x5xf32>
}

// -----

// Short sums, however many there are: a library's tiles would be mostly empty.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     stablehlo.dot_general
// CHECK:         stablehlo.reduce
// CHECK:         stablehlo.dot_general
func.func @main(%v: tensor<32xf32>, %x: tensor<32x4194304xf32>, %w: tensor<64xf32>, %y: tensor<64x4194304xf32>) -> (tensor<4194304xf32>, tensor<4194304xf32>) {
  %0 = stablehlo.dot_general %v, %x, contracting_dims = [0] x [0] : (tensor<32xf32>, tensor<32x4194304xf32>) -> tensor<4194304xf32>
  %1 = stablehlo.dot_general %w, %y, contracting_dims = [0] x [0] : (tensor<64xf32>, tensor<64x4194304xf32>) -> tensor<4194304xf32>
  return %0, %1 : tensor<4194304xf32>, tensor<4194304xf32>
}
