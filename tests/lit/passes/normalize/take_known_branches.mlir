// RUN: xgpu-opt %s -p take-known-branches --split-input-file | FileCheck %s

// One branch is taken whatever the index is, also inside another operation's region.

// CHECK-LABEL: func.func @main(%arg0: tensor<i32>, %arg1: tensor<i1>, %arg2: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[R:.*]] = "stablehlo.if"(%arg1) ({
// CHECK-NEXT:      %[[S:.*]] = stablehlo.sine %arg2 : tensor<8xf32>
// CHECK-NEXT:      stablehlo.return %[[S]] : tensor<8xf32>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %arg2 : tensor<8xf32>
// CHECK-NEXT:    }) : (tensor<i1>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[R]] : tensor<8xf32>
func.func @main(%i: tensor<i32>, %p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.case"(%i) ({
      %2 = stablehlo.sine %x : tensor<8xf32>
      stablehlo.return %2 : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A constant names a branch: the second one, the last one where it is out of range, and the first one of an `if`.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>)
// CHECK-NOT:     stablehlo.case
// CHECK-NOT:     stablehlo.if
// CHECK:         %[[A:.*]] = stablehlo.cosine %arg0 : tensor<8xf32>
// CHECK:         %[[B:.*]] = stablehlo.cosine %arg0 : tensor<8xf32>
// CHECK:         %[[C:.*]] = stablehlo.sine %arg0 : tensor<8xf32>
// CHECK-NEXT:    return %[[A]], %[[B]], %[[C]]
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = "stablehlo.case"(%one) ({
    %4 = stablehlo.sine %x : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }, {
    %4 = stablehlo.cosine %x : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  %below = stablehlo.constant dense<-1> : tensor<i32>
  %1 = "stablehlo.case"(%below) ({
    stablehlo.return %x : tensor<8xf32>
  }, {
    %4 = stablehlo.cosine %x : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %2 = "stablehlo.if"(%true) ({
    %4 = stablehlo.sine %x : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// So does what follows from constants.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NOT:     stablehlo.case
// CHECK:         %[[C:.*]] = stablehlo.cosine %arg0 : tensor<8xf32>
// CHECK-NEXT:    return %[[C]]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.convert %true : (tensor<i1>) -> tensor<i32>
  %index = stablehlo.clamp %zero, %one, %one : tensor<i32>
  %0 = "stablehlo.case"(%index) ({
    stablehlo.return %x : tensor<8xf32>
  }, {
    %1 = stablehlo.cosine %x : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// An index that is computed of an argument may be any.

// CHECK-LABEL: func.func @main(%arg0: tensor<i32>, %arg1: tensor<8xf32>)
// CHECK-NEXT:    "stablehlo.case"(%arg0)
func.func @main(%i: tensor<i32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %x : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A value that is chosen either way is no choice, also in a loop.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xi1>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>)
// CHECK:         stablehlo.while(%[[X:.*]] = %arg1, %[[Y:.*]] = %arg2)
// CHECK:         } do {
// CHECK-NEXT:      %[[S:.*]] = stablehlo.select %arg0, %[[Y]], %[[X]]
// CHECK-NEXT:      stablehlo.return %[[S]], %[[Y]]
func.func @main(%p: tensor<8xi1>, %x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = stablehlo.while(%a = %x, %b = %y) : tensor<8xf32>, tensor<8xf32>
  cond {
    %true = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %true : tensor<i1>
  } do {
    %1 = stablehlo.select %p, %b, %a : tensor<8xi1>, tensor<8xf32>
    %2 = stablehlo.select %p, %b, %b : tensor<8xi1>, tensor<8xf32>
    stablehlo.return %1, %2 : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
