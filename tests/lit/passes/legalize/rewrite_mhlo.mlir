// RUN: xgpu-opt %s -p rewrite-mhlo --split-input-file | FileCheck %s

// A fusion is unwrapped, and what is in it rewritten.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x2xf32>) -> tensor<4x2xf32> {
// CHECK-NEXT:    %[[A:.*]] = chlo.erf %arg0 : tensor<4x2xf32> -> tensor<4x2xf32>
// CHECK-NEXT:    return %[[A]] : tensor<4x2xf32>
func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = "mhlo.fusion"(%x) ({
  ^bb0(%a: tensor<4x2xf32>):
    %1 = "mhlo.erf"(%a) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %2 = "mhlo.copy"(%1) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    "mhlo.return"(%2) : (tensor<4x2xf32>) -> ()
  }) {fusion_kind = #mhlo<fusion_kind kLoop>} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// A bitcast between layouts is a transpose.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x2xf32>) -> tensor<2x4xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    return %[[A]] : tensor<2x4xf32>
func.func @main(%x: tensor<4x2xf32>) -> tensor<2x4xf32> {
  %0 = "mhlo.bitcast"(%x) {result_layout = dense<[0, 1]> : tensor<2xindex>, source_layout = dense<[1, 0]> : tensor<2xindex>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Elements that are roughly the first are the first of a sort where a device knows no faster way.

// CHECK-LABEL: func.func @main(%arg0: tensor<7xf32>, %arg1: tensor<f32>) -> tensor<2xf32> {
// CHECK-NEXT:    %[[A:.*]] = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
// CHECK-NEXT:    ^bb0(%[[B:.*]]: tensor<f32>, %[[C:.*]]: tensor<f32>):
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare GT, %[[B]], %[[C]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    }) : (tensor<7xf32>) -> tensor<7xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.slice %[[A]] [0:2] : (tensor<7xf32>) -> tensor<2xf32>
// CHECK-NEXT:    return %[[E]] : tensor<2xf32>
func.func private @order(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}
func.func @main(%x: tensor<7xf32>, %least: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @ApproxTopK(%x, %least) {called_computations = [@order], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, reduction_dim = 0 : i64, top_k = 2 : i64}} : (tensor<7xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
