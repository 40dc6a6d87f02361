// RUN: xgpu-opt %s -p find-recursive-scans --split-input-file | FileCheck %s

// Two elements are one level: the first, and both combined.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:    %[[A:.*]] = "xgpu.scan"(%arg0) ({
// CHECK-NEXT:    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:      %[[B:.*]] = stablehlo.maximum %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<f32>
// CHECK-NEXT:    }) {dimension = 0 : i64, reverse = false} : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.broadcast_in_dim %[[C]], dims = [] : (tensor<f32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.add %[[A]], %[[D]] : tensor<2xf32>
// CHECK-NEXT:    return %[[E]] : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %x [0:1:2] : (tensor<2xf32>) -> tensor<1xf32>
  %1 = stablehlo.slice %x [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
  %2 = stablehlo.maximum %0, %1 : tensor<1xf32>
  %3 = stablehlo.slice %x [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %4 = stablehlo.pad %3, %zero, low = [0], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %5 = stablehlo.pad %2, %zero, low = [1], high = [0], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %6 = stablehlo.add %4, %5 : tensor<2xf32>
  return %6 : tensor<2xf32>
}

// -----

// An array that is broadcast where it is combined with another is broadcast before.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4x3xf32>) -> tensor<4x3xf32> {
// CHECK-NEXT:     %[[A:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32>
// CHECK-NEXT:     %[[B:.*]]:2 = "xgpu.scan"(%arg1, %[[A]]) ({
// CHECK-NEXT:     ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>):
// CHECK-NEXT:       %[[C:.*]] = stablehlo.multiply %arg5, %arg2 : tensor<f32>
// CHECK-NEXT:       %[[D:.*]] = stablehlo.add %[[C]], %arg4 : tensor<f32>
// CHECK-NEXT:       %[[E:.*]] = stablehlo.multiply %arg3, %arg5 : tensor<f32>
// CHECK-NEXT:       stablehlo.return %[[D]], %[[E]] : tensor<f32>, tensor<f32>
// CHECK-NEXT:     }) {dimension = 0 : i64, reverse = false} : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
// CHECK-NEXT:     %[[F:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:     %[[G:.*]] = stablehlo.broadcast_in_dim %[[F]], dims = [] : (tensor<f32>) -> tensor<4x3xf32>
// CHECK-NEXT:     %[[H:.*]] = stablehlo.add %[[B]]#0, %[[G]] : tensor<4x3xf32>
// CHECK-NEXT:     return %[[H]] : tensor<4x3xf32>
func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4x3xf32>) -> (tensor<4x3xf32>) {
  %0 = stablehlo.slice %arg0 [0:3:2] : (tensor<4xf32>) -> tensor<2xf32>
  %1 = stablehlo.slice %arg1 [0:3:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.slice %arg0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
  %3 = stablehlo.slice %arg1 [1:4:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %4 = stablehlo.multiply %0, %2 : tensor<2xf32>
  %5 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %7 = stablehlo.multiply %6, %1 : tensor<2x3xf32>
  %8 = stablehlo.add %7, %3 : tensor<2x3xf32>
  %9 = stablehlo.slice %8 [0:1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %10 = stablehlo.slice %4 [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
  %11 = stablehlo.slice %8 [1:2:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %12 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
  %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x3xf32>
  %14 = stablehlo.multiply %13, %9 : tensor<1x3xf32>
  %15 = stablehlo.add %14, %11 : tensor<1x3xf32>
  %16 = stablehlo.slice %15 [0:0, 0:3] : (tensor<1x3xf32>) -> tensor<0x3xf32>
  %17 = stablehlo.slice %4 [2:2:2] : (tensor<2xf32>) -> tensor<0xf32>
  %18 = stablehlo.slice %8 [2:2:2, 0:3] : (tensor<2x3xf32>) -> tensor<0x3xf32>
  %19 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<0xf32>) -> tensor<0x1xf32>
  %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<0x1xf32>) -> tensor<0x3xf32>
  %21 = stablehlo.multiply %20, %16 : tensor<0x3xf32>
  %22 = stablehlo.add %21, %18 : tensor<0x3xf32>
  %23 = stablehlo.slice %8 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %24 = stablehlo.concatenate %23, %22, dim = 0 : (tensor<1x3xf32>, tensor<0x3xf32>) -> tensor<1x3xf32>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %25 = stablehlo.pad %24, %cst, low = [0, 0], high = [1, 0], interior = [1, 0] : (tensor<1x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %26 = stablehlo.pad %15, %cst, low = [1, 0], high = [0, 0], interior = [1, 0] : (tensor<1x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %27 = stablehlo.add %25, %26 : tensor<2x3xf32>
  %28 = stablehlo.slice %27 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %29 = stablehlo.slice %arg0 [2:4:2] : (tensor<4xf32>) -> tensor<1xf32>
  %30 = stablehlo.slice %arg1 [2:4:2, 0:3] : (tensor<4x3xf32>) -> tensor<1x3xf32>
  %31 = stablehlo.broadcast_in_dim %29, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
  %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x3xf32>
  %33 = stablehlo.multiply %32, %28 : tensor<1x3xf32>
  %34 = stablehlo.add %33, %30 : tensor<1x3xf32>
  %35 = stablehlo.slice %arg1 [0:1, 0:3] : (tensor<4x3xf32>) -> tensor<1x3xf32>
  %36 = stablehlo.concatenate %35, %34, dim = 0 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %37 = stablehlo.pad %36, %cst, low = [0, 0], high = [1, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %38 = stablehlo.pad %27, %cst, low = [1, 0], high = [0, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %39 = stablehlo.add %37, %38 : tensor<4x3xf32>
  return %39 : tensor<4x3xf32>
}
