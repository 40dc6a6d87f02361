// RUN: xgpu-opt %s -p 'reduce-computed-products{products=library}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'reduce-computed-products{target=sm_90}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p reduce-computed-products --split-input-file | FileCheck %s --check-prefix=TILES

// Weights with scales for groups of 128 are read once, for a sum for each row. Kernels of products that dequantise them
// on tiles are expected to be faster, where there are such: not of f32.

// TILES-LABEL: func.func @main(%arg0: tensor<2x4096xbf16>
// TILES-NOT:     stablehlo.reduce(
// TILES:         return
// TILES-LABEL: func.func @main(%arg0: tensor<8192x4096xi8>
// TILES-COUNT-3: stablehlo.reduce(
// CHECK-LABEL: func.func @main(%arg0: tensor<2x4096xbf16>
// CHECK:         stablehlo.multiply {{.*}} : tensor<32x128x8192xbf16>
// CHECK:         stablehlo.slice %arg0 [0:1, 0:4096]
// CHECK:         stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<4096x8192xf32>, tensor<f32>) -> tensor<8192xf32>
// CHECK:         stablehlo.slice %arg0 [1:2, 0:4096]
// CHECK:         stablehlo.reduce
// CHECK:         %[[R:.*]] = stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : (tensor<1x8192xbf16>, tensor<1x8192xbf16>) -> tensor<2x8192xbf16>
// CHECK-NEXT:    return %[[R]]
func.func @main(%x: tensor<2x4096xbf16>, %q: tensor<32x128x8192xi8>, %s: tensor<32x8192xbf16>) -> tensor<2x8192xbf16> {
  %0 = stablehlo.convert %q : (tensor<32x128x8192xi8>) -> tensor<32x128x8192xbf16>
  %1 = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<32x8192xbf16>) -> tensor<32x128x8192xbf16>
  %2 = stablehlo.multiply %0, %1 : tensor<32x128x8192xbf16>
  %3 = stablehlo.reshape %2 : (tensor<32x128x8192xbf16>) -> tensor<4096x8192xbf16>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [1] x [0] : (tensor<2x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<2x8192xbf16>
  return %4 : tensor<2x8192xbf16>
}

// -----

// Rows that are the second operand are columns of the result.

// CHECK-LABEL: func.func @main(%arg0: tensor<8192x4096xi8>
// CHECK-COUNT-3: stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<8192x4096xf32>, tensor<f32>) -> tensor<8192xf32>
// CHECK:         stablehlo.concatenate %{{.*}}, %{{.*}}, %{{.*}}, dim = 1 : {{.*}} -> tensor<8192x3xf32>
func.func @main(%q: tensor<8192x4096xi8>, %x: tensor<4096x3xf32>) -> tensor<8192x3xf32> {
  %wide = stablehlo.convert %q : (tensor<8192x4096xi8>) -> tensor<8192x4096xf32>
  %0 = stablehlo.abs %wide : tensor<8192x4096xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<8192x4096xf32>, tensor<4096x3xf32>) -> tensor<8192x3xf32>
  return %1 : tensor<8192x3xf32>
}

// -----

// Left are products of many rows, of a small matrix, of one in memory, and of one that others read.

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-4: stablehlo.dot_general
// CHECK-NOT:     stablehlo.reduce
func.func @main(%x: tensor<2x4096xf32>, %y: tensor<64x4096xf32>, %w: tensor<4096x8192xf32>, %small: tensor<4096x64xf32>) -> (tensor<64x8192xf32>, tensor<2x64xf32>, tensor<2x8192xf32>, tensor<2x8192xf32>, tensor<4096x8192xf32>) {
  %0 = stablehlo.sine %w : tensor<4096x8192xf32>
  %1 = stablehlo.dot_general %y, %0, contracting_dims = [1] x [0] : (tensor<64x4096xf32>, tensor<4096x8192xf32>) -> tensor<64x8192xf32>
  %2 = stablehlo.negate %small : tensor<4096x64xf32>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0] : (tensor<2x4096xf32>, tensor<4096x64xf32>) -> tensor<2x64xf32>
  %4 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4096xf32>, tensor<4096x8192xf32>) -> tensor<2x8192xf32>
  %5 = stablehlo.negate %w : tensor<4096x8192xf32>
  %6 = stablehlo.dot_general %x, %5, contracting_dims = [1] x [0] : (tensor<2x4096xf32>, tensor<4096x8192xf32>) -> tensor<2x8192xf32>
  return %1, %3, %4, %6, %5 : tensor<64x8192xf32>, tensor<2x64xf32>, tensor<2x8192xf32>, tensor<2x8192xf32>, tensor<4096x8192xf32>
}

// -----

// What is only widened XLA multiplies without storing it, scaled for each column as well.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.dot_general
// CHECK-NOT:     stablehlo.reduce
func.func @main(%q: tensor<8192x4096xi8>, %x: tensor<4096x3xf32>) -> tensor<8192x3xf32> {
  %0 = stablehlo.convert %q : (tensor<8192x4096xi8>) -> tensor<8192x4096xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<8192x4096xf32>, tensor<4096x3xf32>) -> tensor<8192x3xf32>
  return %1 : tensor<8192x3xf32>
}

// -----

// CHECK-LABEL: func.func @main(%arg0: tensor<2x4096xbf16>
// CHECK:         stablehlo.dot_general
// CHECK-NOT:     stablehlo.reduce
func.func @main(%x: tensor<2x4096xbf16>, %q: tensor<4096x8192xi8>, %s: tensor<8192xbf16>) -> tensor<2x8192xbf16> {
  %0 = stablehlo.convert %q : (tensor<4096x8192xi8>) -> tensor<4096x8192xbf16>
  %1 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8192xbf16>) -> tensor<4096x8192xbf16>
  %2 = stablehlo.multiply %0, %1 : tensor<4096x8192xbf16>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0] : (tensor<2x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<2x8192xbf16>
  return %3 : tensor<2x8192xbf16>
}
