// RUN: xgpu-opt %s -p invert-divisors --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main(%arg0: tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<[5.000000e-01, 0.333333343]> : tensor<2xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [1] : (tensor<2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.multiply %arg0, %[[B]] : tensor<8x2xf32>
// CHECK-NEXT:    return %[[C]] : tensor<8x2xf32>
func.func @main(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %c = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xf32>) -> tensor<8x2xf32>
  %1 = stablehlo.divide %x, %0 : tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// -----

// What else reads the divisors reads them still.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<[2.000000e+00, -4.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<[5.000000e-01, -2.500000e-01]> : tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.multiply %arg0, %[[B]] : tensor<2xf32>
// CHECK-NEXT:    return %[[C]], %[[A]] : tensor<2xf32>, tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = stablehlo.constant dense<[2.0, -4.0]> : tensor<2xf32>
  %0 = stablehlo.divide %x, %c : tensor<2xf32>
  return %0, %c : tensor<2xf32>, tensor<2xf32>
}

// -----

// The inverse of a zero, or of a very small or large number, is not normal.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>)
// CHECK-COUNT-3: stablehlo.divide
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %small = stablehlo.constant dense<[1.0e-39, 1.0]> : tensor<2xf32>
  %large = stablehlo.constant dense<[1.0e+38, 1.0]> : tensor<2xf32>
  %0 = stablehlo.divide %x, %zero : tensor<2xf32>
  %1 = stablehlo.divide %x, %small : tensor<2xf32>
  %2 = stablehlo.divide %x, %large : tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Of one number, and of other types, quotients stay: they are exact on the host, or everywhere.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf64>)
// CHECK-COUNT-2: stablehlo.divide
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf64>) -> (tensor<2xf32>, tensor<2xf64>) {
  %three = stablehlo.constant dense<3.0> : tensor<2xf32>
  %wide = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf64>
  %0 = stablehlo.divide %x, %three : tensor<2xf32>
  %1 = stablehlo.divide %y, %wide : tensor<2xf64>
  return %0, %1 : tensor<2xf32>, tensor<2xf64>
}
