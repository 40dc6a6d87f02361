// RUN: xgpu-opt %s -p widen-packed --split-input-file | FileCheck %s

// Sums of 4 bits are the lower bits of sums of 8 bits.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x64xi4>) -> tensor<8xi4>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i4>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.convert %arg0 : (tensor<8x64xi4>) -> tensor<8x64xi8>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convert %[[A]] : (tensor<i4>) -> tensor<i8>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reduce(%[[B]] init: %[[C]]) applies stablehlo.add across dimensions = [1] : (tensor<8x64xi8>, tensor<i8>) -> tensor<8xi8>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.convert %[[D]] : (tensor<8xi8>) -> tensor<8xi4>
// CHECK-NEXT:    return %[[E]] : tensor<8xi4>
func.func @main(%x: tensor<8x64xi4>) -> tensor<8xi4> {
  %zero = stablehlo.constant dense<0> : tensor<i4>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x64xi4>, tensor<i4>) -> tensor<8xi4>
  return %0 : tensor<8xi4>
}

// -----

// So are those of a scan.

// CHECK-LABEL: func.func @main(%arg0: tensor<64xi4>) -> tensor<64xi4>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.convert %arg0 : (tensor<64xi4>) -> tensor<64xi8>
// CHECK-NEXT:    %[[B:.*]] = "xgpu.scan"(%[[A]]) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<i8>, %arg2: tensor<i8>):
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %arg1, %arg2 : tensor<i8>
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<i8>
// CHECK-NEXT:    }) {dimension = 0 : i64, reverse = false} : (tensor<64xi8>) -> tensor<64xi8>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.convert %[[B]] : (tensor<64xi8>) -> tensor<64xi4>
// CHECK-NEXT:    return %[[D]] : tensor<64xi4>
func.func @main(%x: tensor<64xi4>) -> tensor<64xi4> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<i4>, %b: tensor<i4>):
    %c = stablehlo.add %a, %b : tensor<i4>
    stablehlo.return %c : tensor<i4>
  }) {dimension = 0 : i64, reverse = false} : (tensor<64xi4>) -> tensor<64xi4>
  return %0 : tensor<64xi4>
}

// -----

// A quotient is not: threads would write parts of a byte, so that XLA makes this scan.

// CHECK-LABEL: func.func @main(%arg0: tensor<64xi4>) -> tensor<64xi4>
// CHECK-NEXT:    %[[A:.*]] = "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<i4>, %arg2: tensor<i4>):
// CHECK-NEXT:      %[[B:.*]] = stablehlo.divide %arg1, %arg2 : tensor<i4>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<i4>
// CHECK-NEXT:    }) {dimension = 0 : i64, reverse = false, xgpu.fallback = "elements that share a byte, of which threads would write parts"} : (tensor<64xi4>) -> tensor<64xi4>
// CHECK-NEXT:    return %[[A]] : tensor<64xi4>
func.func @main(%x: tensor<64xi4>) -> tensor<64xi4> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<i4>, %b: tensor<i4>):
    %c = stablehlo.divide %a, %b : tensor<i4>
    stablehlo.return %c : tensor<i4>
  }) {dimension = 0 : i64, reverse = false} : (tensor<64xi4>) -> tensor<64xi4>
  return %0 : tensor<64xi4>
}
