// RUN: xgpu-opt %s -p forward-barriers --split-input-file | FileCheck %s

// Kernels compute all of the block: there is nothing for XLA to move across the barrier.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.sine %arg0 : tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.add %[[A]], %arg1 : tensor<8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<8xf32>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  %1:2 = stablehlo.optimization_barrier %0, %y : tensor<8xf32>, tensor<8xf32>
  %2 = stablehlo.add %1#0, %1#1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A matrix product is left to XLA, for which the barrier stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x512xf32>) -> tensor<512x512xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.sine %arg0 : tensor<512x512xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.optimization_barrier %[[A]] : tensor<512x512xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.dot_general %[[B]], %[[B]], contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
// CHECK-NEXT:    return %[[C]] : tensor<512x512xf32>
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = stablehlo.sine %x : tensor<512x512xf32>
  %1 = stablehlo.optimization_barrier %0 : tensor<512x512xf32>
  %2 = stablehlo.dot_general %1, %1, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %2 : tensor<512x512xf32>
}
