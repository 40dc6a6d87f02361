// RUN: xgpu-opt %s -p expand-convolutions --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'expand-convolutions{runs=xla}' --split-input-file | FileCheck %s --check-prefix=LIBRARY

// All elements of each window side by side, times the kernel as a matrix.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PADDED:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [0, 1, 0], high = [0, 1, 0]
// CHECK:         %[[A:.*]] = stablehlo.slice %[[PADDED]] [0:1, 0:1000, 0:64]
// CHECK:         %[[B:.*]] = stablehlo.slice %[[PADDED]] [0:1, 1:1001, 0:64]
// CHECK:         %[[C:.*]] = stablehlo.slice %[[PADDED]] [0:1, 2:1002, 0:64]
// CHECK:         %[[PATCHES:.*]] = stablehlo.concatenate %{{.*}}, %{{.*}}, %{{.*}}, dim = 2 : {{.*}} -> tensor<1x1000x3x64xbf16>
// CHECK:         %[[LEFT:.*]] = stablehlo.reshape %[[PATCHES]] : {{.*}} -> tensor<1000x192xbf16>
// CHECK:         %[[RIGHT:.*]] = stablehlo.reshape %arg1 : {{.*}} -> tensor<192x256xbf16>
// CHECK:         stablehlo.dot_general %[[LEFT]], %[[RIGHT]], contracting_dims = [1] x [0]
// CHECK-NOT:     stablehlo.convolution
// LIBRARY:       stablehlo.convolution
func.func @main(%x: tensor<1x1000x64xbf16>, %w: tensor<3x64x256xbf16>) -> tensor<1x1000x256xbf16> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1000x64xbf16>, tensor<3x64x256xbf16>) -> tensor<1x1000x256xbf16>
  return %0 : tensor<1x1000x256xbf16>
}

// -----

// Windows that do not overlap need no copy of what they have in common, as that is nothing.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.concatenate
// CHECK:         stablehlo.reshape %{{.*}} : (tensor<2x64x64x16xf32>) -> tensor<2x8x8x64x16xf32>
// CHECK:         stablehlo.transpose %{{.*}}, dims = [0, 1, 3, 2, 4, 5] : (tensor<2x8x8x8x8x16xf32>)
// CHECK:         stablehlo.dot_general {{.*}} (tensor<128x1024xf32>, tensor<1024x32xf32>) -> tensor<128x32xf32>
func.func @main(%x: tensor<2x64x64x16xf32>, %w: tensor<8x8x16x32xf32>) -> tensor<2x8x8x32xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [8, 8]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x64x64x16xf32>, tensor<8x8x16x32xf32>) -> tensor<2x8x8x32xf32>
  return %0 : tensor<2x8x8x32xf32>
}

// -----

// Few products are a kernel's loop; batches in groups stay.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.convolution
// CHECK-NOT:     stablehlo.dot_general
func.func @main(%x: tensor<1x10x4xf32>, %w: tensor<3x4x8xf32>, %y: tensor<64x1000x64xf32>, %v: tensor<3x64x64xf32>) -> (tensor<1x8x8xf32>, tensor<32x998x64xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x10x4xf32>, tensor<3x4x8xf32>) -> tensor<1x8x8xf32>
  %1 = stablehlo.convolution(%y, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<64x1000x64xf32>, tensor<3x64x64xf32>) -> tensor<32x998x64xf32>
  return %0, %1 : tensor<1x8x8xf32>, tensor<32x998x64xf32>
}
