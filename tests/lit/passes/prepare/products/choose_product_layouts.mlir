// RUN: xgpu-opt %s -p choose-product-layouts --split-input-file | FileCheck %s

// A product reads its operand as it lies in memory; the other attributes stay.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x256xf32>, %arg1: tensor<256x256xf32>) -> tensor<512x256xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<256x256xf32>) -> tensor<512x256xf32>
// CHECK-NEXT:    return %[[A]] : tensor<512x256xf32>
func.func @main(%x: tensor<512x256xf32>, %w: tensor<256x256xf32>) -> tensor<512x256xf32> {
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x256xf32>, tensor<256x256xf32>) -> tensor<512x256xf32>
  return %1 : tensor<512x256xf32>
}

// -----

// Operands are exchanged, so that the result comes as it is wanted.

// CHECK-LABEL: func.func @main(%arg0: tensor<256x512xf32>, %arg1: tensor<128x256xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [1] : (tensor<256x512xf32>, tensor<128x256xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    return %[[A]] : tensor<512x128xf32>
func.func @main(%x: tensor<256x512xf32>, %w: tensor<128x256xf32>) -> tensor<512x128xf32> {
  %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<128x256xf32>, tensor<256x512xf32>) -> tensor<128x512xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<128x512xf32>) -> tensor<512x128xf32>
  return %1 : tensor<512x128xf32>
}

// -----

// What takes no transposes stays as it is.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x256xf32>, %arg1: tensor<256x128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    return %[[A]] : tensor<512x128xf32>
func.func @main(%x: tensor<512x256xf32>, %w: tensor<256x128xf32>) -> tensor<512x128xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
  return %0 : tensor<512x128xf32>
}
