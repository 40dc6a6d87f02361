// RUN: xgpu-opt %s -p sort-short-rows --split-input-file | FileCheck %s

// Each pass brings the first of the elements that are left to its column; those that are alike stay in order.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xi32>)
// CHECK-DAG:     %[[A:.*]] = stablehlo.slice %arg0 [0:4, 0:1]
// CHECK-DAG:     %[[B:.*]] = stablehlo.slice %arg0 [0:4, 1:2]
// CHECK-DAG:     %[[C:.*]] = stablehlo.slice %arg0 [0:4, 2:3]
// CHECK:         %[[FIRST:.*]] = stablehlo.compare LT, %[[C]], %[[B]]
// CHECK-NEXT:    %[[D:.*]] = stablehlo.select %[[FIRST]], %[[C]], %[[B]]
// CHECK-NEXT:    stablehlo.select %[[FIRST]], %{{.*}} : tensor<4x1xi1>, tensor<4x1xi32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.select %[[FIRST]], %[[B]], %[[C]]
// CHECK:         %[[SECOND:.*]] = stablehlo.compare LT, %[[D]], %[[A]]
// CHECK:         %[[LEAST:.*]] = stablehlo.select %[[SECOND]], %[[D]], %[[A]]
// CHECK:         %[[F:.*]] = stablehlo.select %[[SECOND]], %[[A]], %[[D]]
// CHECK:         %[[THIRD:.*]] = stablehlo.compare LT, %[[E]], %[[F]]
// CHECK:         stablehlo.concatenate %[[LEAST]], %{{.*}}, %{{.*}}, dim = 1
// CHECK-NOT:     stablehlo.sort
func.func @main(%x: tensor<4x3xf32>, %v: tensor<4x3xi32>) -> (tensor<4x3xf32>, tensor<4x3xi32>) {
  %0:2 = "stablehlo.sort"(%x, %v) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<4x3xf32>, tensor<4x3xi32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return %0#0, %0#1 : tensor<4x3xf32>, tensor<4x3xi32>
}

// -----

// The two largest need two passes. Of floats, the order is total.

// CHECK-LABEL: func.func @main(%arg0: tensor<5x16xf32>)
// CHECK-COUNT-29: stablehlo.compare GT, {{.*}} TOTALORDER
// CHECK-NOT:     stablehlo.compare
// CHECK-NOT:     chlo.top_k
// CHECK:         return %{{.*}} : tensor<5x2xf32>, tensor<5x2xi32>
func.func @main(%x: tensor<5x16xf32>) -> (tensor<5x2xf32>, tensor<5x2xi32>) {
  %0:2 = chlo.top_k(%x, k = 2) : tensor<5x16xf32> -> (tensor<5x2xf32>, tensor<5x2xi32>)
  return %0#0, %0#1 : tensor<5x2xf32>, tensor<5x2xi32>
}

// -----

// Longer rows stay, and so do constants, which are folded.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x17xi32>)
// CHECK:         "stablehlo.sort"(%arg0)
// CHECK:         "stablehlo.sort"(%c)
func.func @main(%x: tensor<4x17xi32>) -> (tensor<4x17xi32>, tensor<3xi32>) {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<4x17xi32>) -> tensor<4x17xi32>
  %c = stablehlo.constant dense<[3, 1, 2]> : tensor<3xi32>
  %1 = "stablehlo.sort"(%c) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<3xi32>) -> tensor<3xi32>
  return %0, %1 : tensor<4x17xi32>, tensor<3xi32>
}
