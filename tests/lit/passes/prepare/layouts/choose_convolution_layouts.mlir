// RUN: xgpu-opt %s -p 'choose-convolution-layouts{target=sm_90a}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'choose-convolution-layouts{target=sm_80}' --split-input-file | FileCheck %s --check-prefix=SM80

// Images of two dimensions have their channels last; the window stays that of the same dimensions of space.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x64x16x20xf32>, %arg1: tensor<6x64x3x5xf32>)
// CHECK-NEXT:    %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 1] : (tensor<4x64x16x20xf32>) -> tensor<4x16x20x64xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convolution(%[[X]], %arg1) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 2], pad = {{\[\[}}1, 1], [2, 2]]} {{.*}} : (tensor<4x16x20x64xf32>, tensor<6x64x3x5xf32>) -> tensor<4x16x10x6xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.transpose %[[C]], dims = [0, 3, 1, 2] : (tensor<4x16x10x6xf32>) -> tensor<4x6x16x10xf32>
// CHECK-NEXT:    return %[[R]]
// Before compute capability 9.0 only images of 16 bits have them last.
// SM80-NOT: stablehlo.transpose
// SM80:     return
func.func @main(%x: tensor<4x64x16x20xf32>, %w: tensor<6x64x3x5xf32>) -> tensor<4x6x16x10xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 2], pad = [[1, 1], [2, 2]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x64x16x20xf32>, tensor<6x64x3x5xf32>) -> tensor<4x6x16x10xf32>
  return %0 : tensor<4x6x16x10xf32>
}

// -----

// Spaces of three dimensions come last, and stay as they are where they do.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x10x6x7x64xbf16>
// CHECK-NEXT:    %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 4, 1, 2, 3] : (tensor<2x10x6x7x64xbf16>) -> tensor<2x64x10x6x7xbf16>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convolution(%[[X]], %arg1) dim_numbers = [b, f, 0, 1, 2]x[0, 1, 2, i, o]->[b, f, 0, 1, 2]{{.*}} -> tensor<2x30x10x6x7xbf16>
// CHECK-NEXT:    return %[[C]]
func.func @main(%x: tensor<2x10x6x7x64xbf16>, %w: tensor<1x3x3x64x30xbf16>) -> tensor<2x30x10x6x7xbf16> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, f, 0, 1, 2], window = {pad = [[0, 0], [1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x10x6x7x64xbf16>, tensor<1x3x3x64x30xbf16>) -> tensor<2x30x10x6x7xbf16>
  return %0 : tensor<2x30x10x6x7xbf16>
}

// -----

// The gradient by the kernel contracts the batch, and has the images' channels for its own; both arrays are images.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x64x16x16xbf16>, %arg1: tensor<4x6x16x16xbf16>)
// CHECK-NEXT:    %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 1] : (tensor<4x64x16x16xbf16>) -> tensor<4x16x16x64xbf16>
// CHECK-NEXT:    %[[Y:.*]] = stablehlo.transpose %arg1, dims = [0, 2, 3, 1] : (tensor<4x6x16x16xbf16>) -> tensor<4x16x16x6xbf16>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convolution(%[[X]], %[[Y]]) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[f, b, 0, 1]{{.*}} -> tensor<6x64x3x3xbf16>
// CHECK-NEXT:    return %[[C]]
// SM80-LABEL: func.func @main(%arg0: tensor<4x64x16x16xbf16>
// SM80-COUNT-2: stablehlo.transpose
// SM80-NOT:   stablehlo.transpose
func.func @main(%x: tensor<4x64x16x16xbf16>, %y: tensor<4x6x16x16xbf16>) -> tensor<6x64x3x3xbf16> {
  %0 = stablehlo.convolution(%x, %y) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x64x16x16xbf16>, tensor<4x6x16x16xbf16>) -> tensor<6x64x3x3xbf16>
  return %0 : tensor<6x64x3x3xbf16>
}

// -----

// In f64 channels come before the space.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x64x160xf64>
// CHECK-NOT:     stablehlo.transpose
// CHECK:         return
func.func @main(%x: tensor<4x64x160xf64>, %w: tensor<6x64x3xf64>) -> tensor<4x6x158xf64> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x64x160xf64>, tensor<6x64x3xf64>) -> tensor<4x6x158xf64>
  return %0 : tensor<4x6x158xf64>
}
