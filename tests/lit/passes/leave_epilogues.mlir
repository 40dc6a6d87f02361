// RUN: xgpu-opt %s -p leave-epilogues --split-input-file | FileCheck %s

// The addition of a bias is part of the product, and what is computed from each element of the sum.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x256xf32>, %arg1: tensor<256x128xf32>, %arg2: tensor<128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[A]], %[[B]] {xgpu.fallback = "XLA computes it as part of the matrix product"} : tensor<512x128xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.tanh %[[C]] {xgpu.fallback = "XLA computes it as part of the matrix product"} : tensor<512x128xf32>
// CHECK-NEXT:    return %[[D]] : tensor<512x128xf32>
func.func @main(%x: tensor<512x256xf32>, %w: tensor<256x128xf32>, %b: tensor<128xf32>) -> tensor<512x128xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<128xf32>) -> tensor<512x128xf32>
  %2 = stablehlo.add %0, %1 : tensor<512x128xf32>
  %3 = stablehlo.tanh %2 : tensor<512x128xf32>
  return %3 : tensor<512x128xf32>
}

// -----

// Not where a kernel reads the sum: it could as well read the product.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x256xf32>, %arg1: tensor<256x128xf32>, %arg2: tensor<128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<128xf32>) -> tensor<512x128xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[A]], %[[B]] : tensor<512x128xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.sine %[[C]] : tensor<512x128xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.multiply %[[D]], %[[C]] : tensor<512x128xf32>
// CHECK-NEXT:    return %[[E]] : tensor<512x128xf32>
func.func @main(%x: tensor<512x256xf32>, %w: tensor<256x128xf32>, %b: tensor<128xf32>) -> tensor<512x128xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x128xf32>) -> tensor<512x128xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<128xf32>) -> tensor<512x128xf32>
  %2 = stablehlo.add %0, %1 : tensor<512x128xf32>
  %3 = stablehlo.sine %2 : tensor<512x128xf32>
  %4 = stablehlo.multiply %3, %2 : tensor<512x128xf32>
  return %4 : tensor<512x128xf32>
}
