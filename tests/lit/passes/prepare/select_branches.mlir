// RUN: xgpu-opt %s -p select-branches --split-input-file | FileCheck %s

// What both branches compute costs less than to branch. One operand is taken as it is.

// CHECK-LABEL: func.func @main(%arg0: tensor<i1>, %arg1: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.sine %arg1 : tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.select %arg0, %[[A]], %arg1 : tensor<i1>, tensor<8xf32>
// CHECK-NEXT:    return %[[B]] : tensor<8xf32>
func.func @main(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.sine %x : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Any other index than those of the first branches is that of the last one. A result that all give is not selected.

// CHECK-LABEL: func.func @main(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.sine %arg1 : tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.cosine %arg1 : tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.compare EQ, %arg0, %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.select %[[D]], %[[B]], %arg1 : tensor<i1>, tensor<8xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.compare EQ, %arg0, %[[F]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.select %[[G]], %[[A]], %[[E]] : tensor<i1>, tensor<8xf32>
// CHECK-NEXT:    return %[[H]], %arg1 : tensor<8xf32>, tensor<8xf32>
func.func @main(%i: tensor<i32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %x : tensor<8xf32>
    stablehlo.return %1, %x : tensor<8xf32>, tensor<8xf32>
  }, {
    %1 = stablehlo.cosine %x : tensor<8xf32>
    stablehlo.return %1, %x : tensor<8xf32>, tensor<8xf32>
  }, {
    stablehlo.return %x, %x : tensor<8xf32>, tensor<8xf32>
  }) : (tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A branch inside a branch is selected first.

// CHECK-LABEL: func.func @main(%arg0: tensor<i1>, %arg1: tensor<i1>, %arg2: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.negate %arg2 : tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.select %arg1, %[[A]], %arg2 : tensor<i1>, tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.sine %arg2 : tensor<8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.select %arg0, %[[B]], %[[C]] : tensor<i1>, tensor<8xf32>
// CHECK-NEXT:    return %[[D]] : tensor<8xf32>
func.func @main(%p: tensor<i1>, %q: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.if"(%q) ({
      %2 = stablehlo.negate %x : tensor<8xf32>
      stablehlo.return %2 : tensor<8xf32>
    }, {
      stablehlo.return %x : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    %1 = stablehlo.sine %x : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// To compute both takes longer than to branch.

// CHECK-LABEL: func.func @main(%arg0: tensor<i1>, %arg1: tensor<67108864xf32>) -> tensor<67108864xf32>
// CHECK-NEXT:    %[[A:.*]] = "stablehlo.if"(%arg0) ({
// CHECK-NEXT:      %[[B:.*]] = stablehlo.sine %arg1 : tensor<67108864xf32>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<67108864xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %arg1 : tensor<67108864xf32>
// CHECK-NEXT:    }) : (tensor<i1>) -> tensor<67108864xf32>
// CHECK-NEXT:    return %[[A]] : tensor<67108864xf32>
func.func @main(%p: tensor<i1>, %x: tensor<67108864xf32>) -> tensor<67108864xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.sine %x : tensor<67108864xf32>
    stablehlo.return %1 : tensor<67108864xf32>
  }, {
    stablehlo.return %x : tensor<67108864xf32>
  }) : (tensor<i1>) -> tensor<67108864xf32>
  return %0 : tensor<67108864xf32>
}

// -----

// A library makes the product.

// CHECK-LABEL: func.func @main(%arg0: tensor<i1>, %arg1: tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %[[A:.*]] = "stablehlo.if"(%arg0) ({
// CHECK-NEXT:      %[[B:.*]] = stablehlo.dot_general %arg1, %arg1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<64x64xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %arg1 : tensor<64x64xf32>
// CHECK-NEXT:    }) : (tensor<i1>) -> tensor<64x64xf32>
// CHECK-NEXT:    return %[[A]] : tensor<64x64xf32>
func.func @main(%p: tensor<i1>, %x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    stablehlo.return %1 : tensor<64x64xf32>
  }, {
    stablehlo.return %x : tensor<64x64xf32>
  }) : (tensor<i1>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
