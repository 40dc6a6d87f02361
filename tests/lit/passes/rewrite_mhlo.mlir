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
