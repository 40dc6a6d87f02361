// RUN: xgpu-opt %s -p expand-powers --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK:         %[[A:.*]] = stablehlo.multiply %arg0, %arg0 : tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.multiply %[[A]], %arg0 : tensor<8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.power %x, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// The exponent of a gradient of JAX; a square of 16 bits is rounded once.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xbf16>) -> tensor<8xbf16>
// CHECK:         %[[A:.*]] = stablehlo.convert %arg0 : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.multiply %[[A]], %[[A]] : tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convert %[[B]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT:    return %[[C]] : tensor<8xbf16>
func.func @main(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %three = stablehlo.constant dense<3.0> : tensor<bf16>
  %one = stablehlo.constant dense<1.0> : tensor<bf16>
  %two = stablehlo.subtract %three, %one : tensor<bf16>
  %0 = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<bf16>) -> tensor<8xbf16>
  %1 = stablehlo.power %x, %0 : tensor<8xbf16>
  return %1 : tensor<8xbf16>
}

// -----

// Of minus infinity the root is infinity, and of -0 it is 0.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf64>) -> tensor<8xf64>
// CHECK-DAG:     %[[LOW:.*]] = stablehlo.constant dense<0xFFF0000000000000> : tensor<8xf64>
// CHECK-DAG:     %[[HIGH:.*]] = stablehlo.constant dense<0x7FF0000000000000> : tensor<8xf64>
// CHECK-DAG:     %[[A:.*]] = stablehlo.compare EQ, %arg0, %[[LOW]]
// CHECK-DAG:     %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8xf64>
// CHECK-DAG:     %[[B:.*]] = stablehlo.add %arg0, %[[ZERO]] : tensor<8xf64>
// CHECK-DAG:     %[[C:.*]] = stablehlo.sqrt %[[B]] : tensor<8xf64>
// CHECK:         %[[D:.*]] = stablehlo.select %[[A]], %[[HIGH]], %[[C]]
// CHECK-NEXT:    return %[[D]] : tensor<8xf64>
func.func @main(%x: tensor<8xf64>) -> tensor<8xf64> {
  %0 = stablehlo.constant dense<0.5> : tensor<8xf64>
  %1 = stablehlo.power %x, %0 : tensor<8xf64>
  return %1 : tensor<8xf64>
}

// -----

// Exponents that are not known, others, and powers of integers stay.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.power {{.*}} : tensor<8xf32>
// CHECK:         stablehlo.power {{.*}} : tensor<8xf32>
// CHECK:         stablehlo.power {{.*}} : tensor<8xi32>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) {
  %half = stablehlo.constant dense<2.5> : tensor<8xf32>
  %two = stablehlo.constant dense<2> : tensor<8xi32>
  %0 = stablehlo.power %x, %y : tensor<8xf32>
  %1 = stablehlo.power %x, %half : tensor<8xf32>
  %2 = stablehlo.power %i, %two : tensor<8xi32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xi32>
}
