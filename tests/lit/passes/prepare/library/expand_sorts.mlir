// RUN: xgpu-opt %s -p expand-sorts --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'expand-sorts{runs=xla}' --split-input-file | FileCheck %s --check-prefix=XLA

// An element's place is the number of those before it: of earlier ones, those that it does not come before.

// CHECK-LABEL: func.func @main(%arg0: tensor<64xf32>, %arg1: tensor<64xi32>)
// CHECK:         %[[MINE:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<1x1x64x64xf32>
// CHECK:         %[[OTHERS:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [0, 1, 3]
// CHECK:         %[[EARLIER:.*]] = stablehlo.compare LT
// CHECK-NEXT:    %[[A:.*]] = stablehlo.select %[[EARLIER]], %[[MINE]], %[[OTHERS]]
// CHECK-NEXT:    %[[B:.*]] = stablehlo.select %[[EARLIER]], %[[OTHERS]], %[[MINE]]
// CHECK-NEXT:    %[[LESS:.*]] = stablehlo.compare LT, %[[A]], %[[B]]
// CHECK-NEXT:    %[[PRECEDES:.*]] = stablehlo.xor %[[LESS]], %[[EARLIER]]
// CHECK:         stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [3]
// CHECK:         %[[ORDER:.*]] = "stablehlo.scatter"
// CHECK-SAME:    unique_indices = true
// CHECK:         "stablehlo.gather"(%arg0,
// CHECK:         "stablehlo.gather"(%arg1,
// CHECK-NOT:     stablehlo.sort
// XLA:           "stablehlo.sort"
func.func @main(%x: tensor<64xf32>, %v: tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>) {
  %0:2 = "stablehlo.sort"(%x, %v) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<64xf32>, tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64xi32>
}

// -----

// Of a longer row the tiles are sorted, and then merged, by a loop for each doubling of the runs.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x9000xf32>)
// CHECK:         tensor<3x36x256x256xi1>
// CHECK-COUNT-6: stablehlo.while
// CHECK-NOT:     stablehlo.while
// CHECK:         stablehlo.slice {{.*}} -> tensor<3x5xf32>
// CHECK-NOT:     chlo.top_k
// XLA:           chlo.top_k
func.func @main(%x: tensor<3x9000xf32>) -> (tensor<3x5xf32>, tensor<3x5xi32>) {
  %0:2 = chlo.top_k(%x, k = 5) : tensor<3x9000xf32> -> (tensor<3x5xf32>, tensor<3x5xi32>)
  return %0#0, %0#1 : tensor<3x5xf32>, tensor<3x5xi32>
}

// -----

// A region that looks at other arrays stays, as it says nothing of single elements; one that looks at nothing, too.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: "stablehlo.sort"
// CHECK-NOT:     stablehlo.reduce
func.func @main(%x: tensor<64xf32>, %p: tensor<i1>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %chosen = stablehlo.and %less, %p : tensor<i1>
    stablehlo.return %chosen : tensor<i1>
  }) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %never = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %never : tensor<i1>
  }) : (tensor<64xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}
