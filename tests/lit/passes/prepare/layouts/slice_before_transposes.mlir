// RUN: xgpu-opt %s -p slice-before-transposes --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main(%arg0: tensor<4x64x512xf32>) -> tensor<256x4x20xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.slice %arg0 [0:4, 3:63:3, 0:256] : (tensor<4x64x512xf32>) -> tensor<4x20x256xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.transpose %[[A]], dims = [2, 0, 1] : (tensor<4x20x256xf32>) -> tensor<256x4x20xf32>
// CHECK-NEXT:    return %[[B]]
func.func @main(%x: tensor<4x64x512xf32>) -> tensor<256x4x20xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<4x64x512xf32>) -> tensor<512x4x64xf32>
  %1 = stablehlo.slice %0 [0:256, 0:4, 3:63:3] : (tensor<512x4x64xf32>) -> tensor<256x4x20xf32>
  return %1 : tensor<256x4x20xf32>
}

// -----

// Halves are two transposes of half as much each.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x512xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.slice %arg0 [0:64, 0:256] : (tensor<64x512xf32>) -> tensor<64x256xf32>
// CHECK-NEXT:    stablehlo.transpose %[[A]], dims = [1, 0] : (tensor<64x256xf32>) -> tensor<256x64xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.slice %arg0 [0:64, 256:512] : (tensor<64x512xf32>) -> tensor<64x256xf32>
// CHECK-NEXT:    stablehlo.transpose %[[B]], dims = [1, 0] : (tensor<64x256xf32>) -> tensor<256x64xf32>
// CHECK-NEXT:    return
func.func @main(%x: tensor<64x512xf32>) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
  %1 = stablehlo.slice %0 [0:256, 0:64] : (tensor<512x64xf32>) -> tensor<256x64xf32>
  %2 = stablehlo.slice %0 [256:512, 0:64] : (tensor<512x64xf32>) -> tensor<256x64xf32>
  return %1, %2 : tensor<256x64xf32>, tensor<256x64xf32>
}

// -----

// Windows that overlap would be transposed several times.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x512xf32>)
// CHECK-NEXT:    stablehlo.transpose
// CHECK-NEXT:    stablehlo.slice
// CHECK-NEXT:    stablehlo.slice
func.func @main(%x: tensor<64x512xf32>) -> (tensor<511x64xf32>, tensor<511x64xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
  %1 = stablehlo.slice %0 [0:511, 0:64] : (tensor<512x64xf32>) -> tensor<511x64xf32>
  %2 = stablehlo.slice %0 [1:512, 0:64] : (tensor<512x64xf32>) -> tensor<511x64xf32>
  return %1, %2 : tensor<511x64xf32>, tensor<511x64xf32>
}

// -----

// What is read as a whole as well is transposed once.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x512xf32>)
// CHECK-NEXT:    stablehlo.transpose
// CHECK-NEXT:    stablehlo.slice
func.func @main(%x: tensor<64x512xf32>) -> (tensor<256x64xf32>, tensor<512x64xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
  %1 = stablehlo.slice %0 [0:256, 0:64] : (tensor<512x64xf32>) -> tensor<256x64xf32>
  return %1, %0 : tensor<256x64xf32>, tensor<512x64xf32>
}
