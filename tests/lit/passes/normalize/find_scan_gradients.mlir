// RUN: xgpu-opt %s -p find-scan-gradients --split-input-file | FileCheck %s

// The gradient of products of all elements up to each: a recurrence from the end.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %[[A:.*]] = "xgpu.scan"(%arg0) ({
// CHECK-NEXT:     ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:       %[[B:.*]] = stablehlo.multiply %arg2, %arg3 : tensor<f32>
// CHECK-NEXT:       stablehlo.return %[[B]] : tensor<f32>
// CHECK-NEXT:     }) {dimension = 0 : i64, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:     %[[D:.*]] = stablehlo.broadcast_in_dim %[[C]], dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:     %[[E:.*]] = stablehlo.add %[[A]], %[[D]] : tensor<4xf32>
// CHECK-NEXT:     %[[F:.*]] = stablehlo.slice %arg0 [1:4] : (tensor<4xf32>) -> tensor<3xf32>
// CHECK-NEXT:     %[[G:.*]] = stablehlo.slice %arg1 [1:4] : (tensor<4xf32>) -> tensor<3xf32>
// CHECK-NEXT:     %[[H:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:     %[[I:.*]] = stablehlo.pad %[[F]], %[[H]], low = [0], high = [1], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:     %[[J:.*]]:2 = "xgpu.scan"(%[[I]], %arg1) ({
// CHECK-NEXT:     ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>):
// CHECK-NEXT:       %[[K:.*]] = stablehlo.multiply %arg4, %arg2 : tensor<f32>
// CHECK-NEXT:       %[[L:.*]] = stablehlo.multiply %arg4, %arg3 : tensor<f32>
// CHECK-NEXT:       %[[M:.*]] = stablehlo.add %arg5, %[[L]] : tensor<f32>
// CHECK-NEXT:       stablehlo.return %[[K]], %[[M]] : tensor<f32>, tensor<f32>
// CHECK-NEXT:     }) {dimension = 0 : i64, reverse = true} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     %[[N:.*]] = stablehlo.slice %[[J]]#1 [1:4] : (tensor<4xf32>) -> tensor<3xf32>
// CHECK-NEXT:     %[[O:.*]] = stablehlo.slice %[[E]] [0:3] : (tensor<4xf32>) -> tensor<3xf32>
// CHECK-NEXT:     %[[P:.*]] = stablehlo.multiply %[[O]], %[[N]] : tensor<3xf32>
// CHECK-NEXT:     %[[Q:.*]] = stablehlo.slice %[[J]]#1 [0:1] : (tensor<4xf32>) -> tensor<1xf32>
// CHECK-NEXT:     %[[R:.*]] = stablehlo.concatenate %[[Q]], %[[P]], dim = 0 : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %[[S:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT:     %[[T:.*]] = stablehlo.add %[[R]], %[[S]] : tensor<4xf32>
// CHECK-NEXT:     return %[[E]], %[[T]] : tensor<4xf32>, tensor<4xf32>
func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "xgpu.scan"(%arg0) ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %54 = stablehlo.multiply %arg2, %arg3 : tensor<f32>
    stablehlo.return %54 : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = stablehlo.slice %arg0 [0:3:2] : (tensor<4xf32>) -> tensor<2xf32>
  %4 = stablehlo.slice %arg0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<2xf32>
  %6 = "xgpu.scan"(%5) ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %54 = stablehlo.multiply %arg2, %arg3 : tensor<f32>
    stablehlo.return %54 : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<2xf32>) -> tensor<2xf32>
  %7 = stablehlo.slice %5 [0:1:2] : (tensor<2xf32>) -> tensor<1xf32>
  %8 = stablehlo.slice %5 [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
  %9 = stablehlo.multiply %7, %8 : tensor<1xf32>
  %10 = stablehlo.slice %9 [0:0] : (tensor<1xf32>) -> tensor<0xf32>
  %11 = stablehlo.slice %5 [2:2:2] : (tensor<2xf32>) -> tensor<0xf32>
  %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2xf32>
  %13 = stablehlo.add %6, %12 : tensor<2xf32>
  %14 = stablehlo.slice %13 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %15 = stablehlo.slice %arg0 [2:4:2] : (tensor<4xf32>) -> tensor<1xf32>
  %16 = stablehlo.pad %arg1, %cst, low = [-1], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  %17 = stablehlo.slice %16 [0:3:2] : (tensor<3xf32>) -> tensor<2xf32>
  %18 = stablehlo.pad %arg1, %cst, low = [0], high = [-1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  %19 = stablehlo.slice %18 [0:3:2] : (tensor<3xf32>) -> tensor<2xf32>
  %20 = stablehlo.slice %19 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %21 = stablehlo.slice %19 [1:2] : (tensor<2xf32>) -> tensor<1xf32>
  %22 = stablehlo.pad %20, %cst, low = [0], high = [3], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<4xf32>
  %23 = stablehlo.multiply %14, %21 : tensor<1xf32>
  %24 = stablehlo.multiply %21, %15 : tensor<1xf32>
  %25 = stablehlo.pad %23, %cst, low = [2], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<4xf32>
  %26 = stablehlo.add %22, %25 : tensor<4xf32>
  %27 = stablehlo.pad %24, %cst, low = [0], high = [1], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %28 = stablehlo.add %17, %27 : tensor<2xf32>
  %29 = stablehlo.pad %28, %cst, low = [-1], high = [0], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<1xf32>
  %30 = stablehlo.slice %29 [0:1:2] : (tensor<1xf32>) -> tensor<1xf32>
  %31 = stablehlo.pad %28, %cst, low = [0], high = [-1], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<1xf32>
  %32 = stablehlo.slice %31 [0:1:2] : (tensor<1xf32>) -> tensor<1xf32>
  %33 = stablehlo.slice %32 [0:1] : (tensor<1xf32>) -> tensor<1xf32>
  %34 = stablehlo.slice %32 [1:1] : (tensor<1xf32>) -> tensor<0xf32>
  %35 = stablehlo.pad %33, %cst, low = [0], high = [1], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %36 = stablehlo.multiply %10, %34 : tensor<0xf32>
  %37 = stablehlo.multiply %34, %11 : tensor<0xf32>
  %38 = stablehlo.pad %36, %cst, low = [2], high = [0], interior = [1] : (tensor<0xf32>, tensor<f32>) -> tensor<2xf32>
  %39 = stablehlo.add %35, %38 : tensor<2xf32>
  %40 = stablehlo.pad %37, %cst, low = [0], high = [1], interior = [0] : (tensor<0xf32>, tensor<f32>) -> tensor<1xf32>
  %41 = stablehlo.add %30, %40 : tensor<1xf32>
  %42 = stablehlo.multiply %7, %41 : tensor<1xf32>
  %43 = stablehlo.multiply %41, %8 : tensor<1xf32>
  %44 = stablehlo.pad %42, %cst, low = [1], high = [0], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %45 = stablehlo.add %39, %44 : tensor<2xf32>
  %46 = stablehlo.pad %43, %cst, low = [0], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %47 = stablehlo.add %45, %46 : tensor<2xf32>
  %48 = stablehlo.multiply %3, %47 : tensor<2xf32>
  %49 = stablehlo.multiply %47, %4 : tensor<2xf32>
  %50 = stablehlo.pad %48, %cst, low = [1], high = [0], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  %51 = stablehlo.add %26, %50 : tensor<4xf32>
  %52 = stablehlo.pad %49, %cst, low = [0], high = [1], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  %53 = stablehlo.add %51, %52 : tensor<4xf32>
  return %2, %53 : tensor<4xf32>, tensor<4xf32>
}

// -----

// What differs in one operation is no gradient of a scan's.

// CHECK-LABEL: func.func @main(
// CHECK-NOT: reverse = true
// CHECK: stablehlo.divide
// CHECK-NOT: reverse = true
// CHECK: return
func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "xgpu.scan"(%arg0) ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %54 = stablehlo.multiply %arg2, %arg3 : tensor<f32>
    stablehlo.return %54 : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = stablehlo.slice %arg0 [0:3:2] : (tensor<4xf32>) -> tensor<2xf32>
  %4 = stablehlo.slice %arg0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<2xf32>
  %6 = "xgpu.scan"(%5) ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %54 = stablehlo.multiply %arg2, %arg3 : tensor<f32>
    stablehlo.return %54 : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<2xf32>) -> tensor<2xf32>
  %7 = stablehlo.slice %5 [0:1:2] : (tensor<2xf32>) -> tensor<1xf32>
  %8 = stablehlo.slice %5 [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
  %9 = stablehlo.multiply %7, %8 : tensor<1xf32>
  %10 = stablehlo.slice %9 [0:0] : (tensor<1xf32>) -> tensor<0xf32>
  %11 = stablehlo.slice %5 [2:2:2] : (tensor<2xf32>) -> tensor<0xf32>
  %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2xf32>
  %13 = stablehlo.add %6, %12 : tensor<2xf32>
  %14 = stablehlo.slice %13 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %15 = stablehlo.slice %arg0 [2:4:2] : (tensor<4xf32>) -> tensor<1xf32>
  %16 = stablehlo.pad %arg1, %cst, low = [-1], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  %17 = stablehlo.slice %16 [0:3:2] : (tensor<3xf32>) -> tensor<2xf32>
  %18 = stablehlo.pad %arg1, %cst, low = [0], high = [-1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  %19 = stablehlo.slice %18 [0:3:2] : (tensor<3xf32>) -> tensor<2xf32>
  %20 = stablehlo.slice %19 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %21 = stablehlo.slice %19 [1:2] : (tensor<2xf32>) -> tensor<1xf32>
  %22 = stablehlo.pad %20, %cst, low = [0], high = [3], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<4xf32>
  %23 = stablehlo.multiply %14, %21 : tensor<1xf32>
  %24 = stablehlo.multiply %21, %15 : tensor<1xf32>
  %25 = stablehlo.pad %23, %cst, low = [2], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<4xf32>
  %26 = stablehlo.add %22, %25 : tensor<4xf32>
  %27 = stablehlo.pad %24, %cst, low = [0], high = [1], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %28 = stablehlo.add %17, %27 : tensor<2xf32>
  %29 = stablehlo.pad %28, %cst, low = [-1], high = [0], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<1xf32>
  %30 = stablehlo.slice %29 [0:1:2] : (tensor<1xf32>) -> tensor<1xf32>
  %31 = stablehlo.pad %28, %cst, low = [0], high = [-1], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<1xf32>
  %32 = stablehlo.slice %31 [0:1:2] : (tensor<1xf32>) -> tensor<1xf32>
  %33 = stablehlo.slice %32 [0:1] : (tensor<1xf32>) -> tensor<1xf32>
  %34 = stablehlo.slice %32 [1:1] : (tensor<1xf32>) -> tensor<0xf32>
  %35 = stablehlo.pad %33, %cst, low = [0], high = [1], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %36 = stablehlo.multiply %10, %34 : tensor<0xf32>
  %37 = stablehlo.multiply %34, %11 : tensor<0xf32>
  %38 = stablehlo.pad %36, %cst, low = [2], high = [0], interior = [1] : (tensor<0xf32>, tensor<f32>) -> tensor<2xf32>
  %39 = stablehlo.add %35, %38 : tensor<2xf32>
  %40 = stablehlo.pad %37, %cst, low = [0], high = [1], interior = [0] : (tensor<0xf32>, tensor<f32>) -> tensor<1xf32>
  %41 = stablehlo.add %30, %40 : tensor<1xf32>
  %42 = stablehlo.multiply %7, %41 : tensor<1xf32>
  %43 = stablehlo.divide %41, %8 : tensor<1xf32>
  %44 = stablehlo.pad %42, %cst, low = [1], high = [0], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %45 = stablehlo.add %39, %44 : tensor<2xf32>
  %46 = stablehlo.pad %43, %cst, low = [0], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
  %47 = stablehlo.add %45, %46 : tensor<2xf32>
  %48 = stablehlo.multiply %3, %47 : tensor<2xf32>
  %49 = stablehlo.multiply %47, %4 : tensor<2xf32>
  %50 = stablehlo.pad %48, %cst, low = [1], high = [0], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  %51 = stablehlo.add %26, %50 : tensor<4xf32>
  %52 = stablehlo.pad %49, %cst, low = [0], high = [1], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  %53 = stablehlo.add %51, %52 : tensor<4xf32>
  return %2, %53 : tensor<4xf32>, tensor<4xf32>
}
