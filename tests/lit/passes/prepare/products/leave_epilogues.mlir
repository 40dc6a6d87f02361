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

// -----

// But where the kernel of a product reads it, whose tiles are copied from memory; not one whose threads load elements.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x256xbf16>
// CHECK: stablehlo.add {{.*}} {xgpu.fallback = "XLA computes it as part of the matrix product"}
// CHECK: xgpu.product = "wgmma"
// CHECK: stablehlo.add {{.*}} {xgpu.fallback = "XLA computes it as part of the matrix product"}
// CHECK: xgpu.product = "mma"
// CHECK-NOT: xgpu.fallback
// CHECK: xgpu.product = "fma"
func.func @main(%x: tensor<512x256xbf16>, %w: tensor<256x128xbf16>, %b: tensor<128xbf16>, %v: tensor<128x64xbf16>) -> (tensor<512x64xbf16>, tensor<512x64xbf16>, tensor<512x64xbf16>) {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<128xbf16>) -> tensor<512x128xbf16>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xbf16>, tensor<256x128xbf16>) -> tensor<512x128xbf16>
  %2 = stablehlo.add %1, %0 : tensor<512x128xbf16>
  %3 = stablehlo.dot_general %2, %v, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : (tensor<512x128xbf16>, tensor<128x64xbf16>) -> tensor<512x64xbf16>
  %4 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xbf16>, tensor<256x128xbf16>) -> tensor<512x128xbf16>
  %5 = stablehlo.add %4, %0 : tensor<512x128xbf16>
  %6 = stablehlo.dot_general %5, %v, contracting_dims = [1] x [0] {xgpu.product = "mma"} : (tensor<512x128xbf16>, tensor<128x64xbf16>) -> tensor<512x64xbf16>
  %7 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xbf16>, tensor<256x128xbf16>) -> tensor<512x128xbf16>
  %8 = stablehlo.add %7, %0 : tensor<512x128xbf16>
  %9 = stablehlo.dot_general %8, %v, contracting_dims = [1] x [0] {xgpu.product = "fma"} : (tensor<512x128xbf16>, tensor<128x64xbf16>) -> tensor<512x64xbf16>
  return %3, %6, %9 : tensor<512x64xbf16>, tensor<512x64xbf16>, tensor<512x64xbf16>
}
