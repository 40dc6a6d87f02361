// RUN: xgpu-opt %s -p turn-scans --split-input-file | FileCheck %s

// A scan of what is reversed, reversed, is one from the other end.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK:         %[[A:.*]] = "xgpu.scan"(%arg0)
// CHECK:         }) {dimension = 1 : i64, reverse = true} : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:    return %[[A]] : tensor<2x8xf32>
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.reverse %x, dims = [1] : tensor<2x8xf32>
  %1 = "xgpu.scan"(%0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {dimension = 1 : i64, reverse = false} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = stablehlo.reverse %1, dims = [1] : tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

// -----

// What is before each element: sums of 16 bits in f32, with the zero that they start from.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xbf16>) -> tensor<8xbf16>
// CHECK:         %[[X:.*]] = stablehlo.convert %{{.*}} : (tensor<7xbf16>) -> tensor<7xf32>
// CHECK:         %[[P:.*]] = stablehlo.pad %[[X]], %{{.*}}, low = [1], high = [0], interior = [0] : (tensor<7xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK:         %[[S:.*]] = "xgpu.scan"(%[[P]])
// CHECK:         %[[T:.*]] = stablehlo.add %[[S]], %{{.*}} : tensor<8xf32>
// CHECK:         %[[R:.*]] = stablehlo.convert %[[T]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT:    return %[[R]] : tensor<8xbf16>
func.func @main(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %zeros = stablehlo.constant dense<0.0> : tensor<1xbf16>
  %zero = stablehlo.constant dense<0.0> : tensor<7xf32>
  %0 = stablehlo.slice %x [0:7] : (tensor<8xbf16>) -> tensor<7xbf16>
  %1 = stablehlo.convert %0 : (tensor<7xbf16>) -> tensor<7xf32>
  %2 = "xgpu.scan"(%1) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<7xf32>) -> tensor<7xf32>
  %3 = stablehlo.add %zero, %2 : tensor<7xf32>
  %4 = stablehlo.convert %3 : (tensor<7xf32>) -> tensor<7xbf16>
  %5 = stablehlo.concatenate %zeros, %4, dim = 0 : (tensor<1xbf16>, tensor<7xbf16>) -> tensor<8xbf16>
  return %5 : tensor<8xbf16>
}

// -----

// Zeros that come behind the last element are none of the scan; products start from another number; and what others
// read of the scan stays.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.pad %{{.*}}, %{{.*}}, low = [1], high = [1]
// CHECK:         stablehlo.pad %{{.*}}, %{{.*}}, low = [1], high = [0]
// CHECK:         stablehlo.reverse %{{.*}}, dims = [0] : tensor<8xi32>
// CHECK:         stablehlo.reverse %{{.*}}, dims = [0] : tensor<8xi32>
func.func @main(%x: tensor<8xi32>) -> (tensor<10xi32>, tensor<9xi32>, tensor<8xi32>, tensor<8xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<8xi32>) -> tensor<8xi32>
  %1 = stablehlo.pad %0, %zero, low = [1], high = [1], interior = [0] : (tensor<8xi32>, tensor<i32>) -> tensor<10xi32>
  %2 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.multiply %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<8xi32>) -> tensor<8xi32>
  %3 = stablehlo.pad %2, %zero, low = [1], high = [0], interior = [0] : (tensor<8xi32>, tensor<i32>) -> tensor<9xi32>
  %4 = stablehlo.reverse %x, dims = [0] : tensor<8xi32>
  %5 = "xgpu.scan"(%4) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<8xi32>) -> tensor<8xi32>
  %6 = stablehlo.reverse %5, dims = [0] : tensor<8xi32>
  return %1, %3, %5, %6 : tensor<10xi32>, tensor<9xi32>, tensor<8xi32>, tensor<8xi32>
}
