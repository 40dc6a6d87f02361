// RUN: xgpu-opt %s -p widen-narrow-floats --split-input-file | FileCheck %s

// Arithmetic is done in f16; what moves elements stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf8E5M2>) -> tensor<2x2xf8E5M2> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.convert %arg0 : (tensor<4xf8E5M2>) -> tensor<4xf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.convert %arg0 : (tensor<4xf8E5M2>) -> tensor<4xf16>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[A]], %[[B]] : tensor<4xf16>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.convert %[[C]] : (tensor<4xf16>) -> tensor<4xf8E5M2>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.reshape %[[D]] : (tensor<4xf8E5M2>) -> tensor<2x2xf8E5M2>
// CHECK-NEXT:    return %[[E]] : tensor<2x2xf8E5M2>
func.func @main(%x: tensor<4xf8E5M2>) -> tensor<2x2xf8E5M2> {
  %0 = stablehlo.add %x, %x : tensor<4xf8E5M2>
  %1 = stablehlo.reshape %0 : (tensor<4xf8E5M2>) -> tensor<2x2xf8E5M2>
  return %1 : tensor<2x2xf8E5M2>
}

// -----

// A reduction with its region, in a branch.

// CHECK-LABEL: func.func @main(%arg0: tensor<i1>, %arg1: tensor<4xf8E4M3FN>) -> tensor<f8E4M3FN> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f8E4M3FN>
// CHECK-NEXT:    %[[B:.*]] = "stablehlo.if"(%arg0) ({
// CHECK-NEXT:      %[[C:.*]] = stablehlo.convert %arg1 : (tensor<4xf8E4M3FN>) -> tensor<4xf16>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.convert %[[A]] : (tensor<f8E4M3FN>) -> tensor<f16>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.reduce(%[[C]] init: %[[D]]) applies stablehlo.add across dimensions = [0] : (tensor<4xf16>, tensor<f16>) -> tensor<f16>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.convert %[[E]] : (tensor<f16>) -> tensor<f8E4M3FN>
// CHECK-NEXT:      stablehlo.return %[[F]] : tensor<f8E4M3FN>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %[[A]] : tensor<f8E4M3FN>
// CHECK-NEXT:    }) : (tensor<i1>) -> tensor<f8E4M3FN>
// CHECK-NEXT:    return %[[B]] : tensor<f8E4M3FN>
func.func @main(%p: tensor<i1>, %x: tensor<4xf8E4M3FN>) -> tensor<f8E4M3FN> {
  %zero = stablehlo.constant dense<0.0> : tensor<f8E4M3FN>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
    stablehlo.return %1 : tensor<f8E4M3FN>
  }, {
    stablehlo.return %zero : tensor<f8E4M3FN>
  }) : (tensor<i1>) -> tensor<f8E4M3FN>
  return %0 : tensor<f8E4M3FN>
}

// -----

// The order of the bits tells one NaN from another, as those of f16 do not. Of the types that have no second zero, that
// NaN is alone.

// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    stablehlo.compare LT, %arg0, %arg0, TOTALORDER : (tensor<4xf8E3M4>, tensor<4xf8E3M4>) -> tensor<4xi1>
// CHECK:         stablehlo.compare LT, %{{.*}}, %{{.*}}, TOTALORDER : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
// CHECK:         stablehlo.compare LT, %{{.*}}, %{{.*}}, FLOAT : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
func.func @main(%x: tensor<4xf8E3M4>, %y: tensor<4xf8E5M2FNUZ>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %0 = stablehlo.compare LT, %x, %x, TOTALORDER : (tensor<4xf8E3M4>, tensor<4xf8E3M4>) -> tensor<4xi1>
  %1 = stablehlo.compare LT, %y, %y, TOTALORDER : (tensor<4xf8E5M2FNUZ>, tensor<4xf8E5M2FNUZ>) -> tensor<4xi1>
  %2 = stablehlo.compare LT, %x, %x, FLOAT : (tensor<4xf8E3M4>, tensor<4xf8E3M4>) -> tensor<4xi1>
  return %0, %1, %2 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}
