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

// -----

// Weights of 8 bits that are transposed and then converted are converted first: the product reads them as they lie in
// memory, and XLA converts them on their way. A transpose that something else reads stays for that.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = stablehlo.convert %arg1 : (tensor<256x64xi8>) -> tensor<256x64xbf16>
// CHECK-NEXT: stablehlo.dot_general %arg0, %[[W]], contracting_dims = [1] x [1]
// CHECK-NEXT: return
func.func @main(%x: tensor<512x64xbf16>, %w: tensor<256x64xi8>) -> tensor<512x256xbf16> {
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<256x64xi8>) -> tensor<64x256xi8>
  %1 = stablehlo.convert %0 : (tensor<64x256xi8>) -> tensor<64x256xbf16>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<512x64xbf16>, tensor<64x256xbf16>) -> tensor<512x256xbf16>
  return %2 : tensor<512x256xbf16>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.transpose %arg1
// CHECK: %[[W:.*]] = stablehlo.convert %arg1
// CHECK: stablehlo.dot_general %arg0, %[[W]], contracting_dims = [1] x [1]
// CHECK: return %{{.*}}, %[[T]]
func.func @main(%x: tensor<512x64xbf16>, %w: tensor<256x64xi8>) -> (tensor<512x256xbf16>, tensor<64x256xi8>) {
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<256x64xi8>) -> tensor<64x256xi8>
  %1 = stablehlo.convert %0 : (tensor<64x256xi8>) -> tensor<64x256xbf16>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<512x64xbf16>, tensor<64x256xbf16>) -> tensor<512x256xbf16>
  return %2, %0 : tensor<512x256xbf16>, tensor<64x256xi8>
}

// -----

// What something else reads converted stays transposed for both.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.transpose
// CHECK: %[[C:.*]] = stablehlo.convert
// CHECK: return %{{.*}}, %[[C]]
func.func @main(%x: tensor<512x64xbf16>, %w: tensor<256x64xi8>) -> (tensor<512x256xbf16>, tensor<64x256xbf16>) {
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<256x64xi8>) -> tensor<64x256xi8>
  %1 = stablehlo.convert %0 : (tensor<64x256xi8>) -> tensor<64x256xbf16>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<512x64xbf16>, tensor<64x256xbf16>) -> tensor<512x256xbf16>
  return %2, %1 : tensor<512x256xbf16>, tensor<64x256xbf16>
}
