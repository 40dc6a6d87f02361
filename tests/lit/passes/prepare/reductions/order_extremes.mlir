// RUN: xgpu-opt %s -p order-extremes --split-input-file | FileCheck %s

// Of two NaNs the one before the other is taken, whichever comes first; comparisons are of f32.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x64xbf16>) -> tensor<8xi32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0xFF80> : tensor<bf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.iota dim = 1 : tensor<8x64xi32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.convert %arg0 : (tensor<8x64xbf16>) -> tensor<8x64xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.convert %[[A]] : (tensor<bf16>) -> tensor<f32>
// CHECK-NEXT:    %[[F:.*]]:2 = stablehlo.reduce(%[[D]] init: %[[E]]), (%[[C]] init: %[[B]]) across dimensions = [1] {xgpu.commutative, xgpu.first_extreme = "GT"} : (tensor<8x64xf32>, tensor<8x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
// CHECK-NEXT:     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
// CHECK-NEXT:      %[[G:.*]] = stablehlo.compare GT, %arg1, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.compare NE, %arg1, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.or %[[G]], %[[H]] : tensor<i1>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.compare EQ, %arg1, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.compare LT, %arg2, %arg4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.and %[[J]], %[[K]] : tensor<i1>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.or %[[I]], %[[L]] : tensor<i1>
// CHECK-NEXT:      %[[N:.*]] = stablehlo.select %[[I]], %arg1, %arg3 : tensor<i1>, tensor<f32>
// CHECK-NEXT:      %[[O:.*]] = stablehlo.select %[[M]], %arg2, %arg4 : tensor<i1>, tensor<i32>
// CHECK-NEXT:      %[[P:.*]] = stablehlo.compare NE, %arg1, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      %[[Q:.*]] = stablehlo.compare NE, %arg3, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      %[[R:.*]] = stablehlo.and %[[P]], %[[Q]] : tensor<i1>
// CHECK-NEXT:      %[[S:.*]] = stablehlo.compare LT, %arg2, %arg4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      %[[T:.*]] = stablehlo.select %[[R]], %[[S]], %[[I]] : tensor<i1>, tensor<i1>
// CHECK-NEXT:      %[[U:.*]] = stablehlo.select %[[T]], %arg1, %arg3 : tensor<i1>, tensor<f32>
// CHECK-NEXT:      %[[V:.*]] = stablehlo.select %[[R]], %[[S]], %[[M]] : tensor<i1>, tensor<i1>
// CHECK-NEXT:      %[[W:.*]] = stablehlo.select %[[V]], %arg2, %arg4 : tensor<i1>, tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[U]], %[[W]] : tensor<f32>, tensor<i32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[X:.*]] = stablehlo.convert %[[F]]#0 : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT:    return %[[F]]#1 : tensor<8xi32>
func.func @main(%x: tensor<8x64xbf16>) -> tensor<8xi32> {
  %lowest = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %positions = stablehlo.iota dim = 1 : tensor<8x64xi32>
  %0:2 = stablehlo.reduce(%x init: %lowest), (%positions init: %zero) across dimensions = [1] : (tensor<8x64xbf16>, tensor<8x64xi32>, tensor<bf16>, tensor<i32>) -> (tensor<8xbf16>, tensor<8xi32>)
  reducer(%a: tensor<bf16>, %b: tensor<bf16>) (%i: tensor<i32>, %j: tensor<i32>) {
    %1 = stablehlo.compare GT, %a, %b : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %2 = stablehlo.compare NE, %a, %a : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %3 = stablehlo.or %1, %2 : tensor<i1>
    %4 = stablehlo.compare EQ, %a, %b : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %5 = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.and %4, %5 : tensor<i1>
    %7 = stablehlo.or %3, %6 : tensor<i1>
    %8 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<bf16>
    %9 = stablehlo.select %7, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %8, %9 : tensor<bf16>, tensor<i32>
  }
  return %0#1 : tensor<8xi32>
}

// -----

// Which of equal elements is taken depends on the order here, so that nothing may be said of it.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x64xi32>) -> tensor<8xi32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.iota dim = 1 : tensor<8x64xi32>
// CHECK-NEXT:    %[[C:.*]]:2 = stablehlo.reduce(%arg0 init: %[[A]]), (%[[B]] init: %[[A]]) across dimensions = [1] : (tensor<8x64xi32>, tensor<8x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<8xi32>, tensor<8xi32>)
// CHECK-NEXT:     reducer(%arg1: tensor<i32>, %arg3: tensor<i32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare GT, %arg1, %arg3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.select %[[D]], %arg1, %arg3 : tensor<i1>, tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.select %[[D]], %arg2, %arg4 : tensor<i1>, tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[E]], %[[F]] : tensor<i32>, tensor<i32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[C]]#1 : tensor<8xi32>
func.func @main(%x: tensor<8x64xi32>) -> tensor<8xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %positions = stablehlo.iota dim = 1 : tensor<8x64xi32>
  %0:2 = stablehlo.reduce(%x init: %zero), (%positions init: %zero) across dimensions = [1] : (tensor<8x64xi32>, tensor<8x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<8xi32>, tensor<8xi32>)
  reducer(%a: tensor<i32>, %b: tensor<i32>) (%i: tensor<i32>, %j: tensor<i32>) {
    %1 = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<i32>
    %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<i32>
  }
  return %0#1 : tensor<8xi32>
}
