// RUN: xgpu-opt %s -p rotate-loops --split-input-file | FileCheck %s

// The condition is computed before the loop, and from the next state at the end of its body.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.compare LT, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:    %[[B:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %[[A]]) : tensor<f32>, tensor<i1>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.add %iterArg, %iterArg : tensor<f32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %[[C]], %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[C]], %[[D]] : tensor<f32>, tensor<i1>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#0 : tensor<f32>
func.func @main(%start: tensor<f32>, %limit: tensor<f32>) -> tensor<f32> {
  %r = stablehlo.while(%x = %start) : tensor<f32>
  cond {
    %p = stablehlo.compare LT, %x, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %y = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %y : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

// A loop whose number of iterations is known stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0) : tensor<i32>, tensor<f32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %iterArg, %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.add %iterArg, %[[E]] : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.add %iterArg_0, %iterArg_0 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[F]], %[[G]] : tensor<i32>, tensor<f32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#1 : tensor<f32>
func.func @main(%start: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<f32>
  cond {
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %p = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %j, %y : tensor<i32>, tensor<f32>
  }
  return %r#1 : tensor<f32>
}

// -----

// One whose condition is a loop itself: both are rotated, the inner one before the outer loop and in its body.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.while(%iterArg = %arg0) : tensor<f32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[B:.*]] = stablehlo.compare GT, %iterArg, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.multiply %iterArg, %arg0 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<f32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[D:.*]] = stablehlo.compare LT, %[[A]], %arg0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:    %[[E:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %[[D]]) : tensor<f32>, tensor<i1>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[F:.*]] = stablehlo.add %iterArg, %iterArg : tensor<f32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.compare GT, %[[F]], %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      %[[H:.*]]:2 = stablehlo.while(%iterArg_1 = %[[F]], %iterArg_2 = %[[G]]) : tensor<f32>, tensor<i1>
// CHECK-NEXT:      cond {
// CHECK-NEXT:        stablehlo.return %iterArg_2 : tensor<i1>
// CHECK-NEXT:      } do {
// CHECK-NEXT:        %[[I:.*]] = stablehlo.multiply %iterArg_1, %[[F]] : tensor<f32>
// CHECK-NEXT:        %[[J:.*]] = stablehlo.compare GT, %[[I]], %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:        stablehlo.return %[[I]], %[[J]] : tensor<f32>, tensor<i1>
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[K:.*]] = stablehlo.compare LT, %[[H]]#0, %[[F]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[F]], %[[K]] : tensor<f32>, tensor<i1>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[E]]#0 : tensor<f32>
func.func @main(%start: tensor<f32>, %limit: tensor<f32>) -> tensor<f32> {
  %r = stablehlo.while(%x = %start) : tensor<f32>
  cond {
    %h = stablehlo.while(%z = %x) : tensor<f32>
    cond {
      %q = stablehlo.compare GT, %z, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %q : tensor<i1>
    } do {
      %half = stablehlo.multiply %z, %x : tensor<f32>
      stablehlo.return %half : tensor<f32>
    }
    %p = stablehlo.compare LT, %h, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %y = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %y : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

// Nor is one rotated of which it is known how often it runs when it begins.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]]:2 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %arg0) : tensor<i32>, tensor<f32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[B:.*]] = stablehlo.compare LT, %iterArg, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.add %iterArg, %[[C]] : tensor<i32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.add %iterArg_0, %iterArg_0 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[D]], %[[E]] : tensor<i32>, tensor<f32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[A]]#1 : tensor<f32>
func.func @main(%start: tensor<f32>, %first: tensor<i32>, %last: tensor<i32>) -> tensor<f32> {
  %r:2 = stablehlo.while(%i = %first, %x = %start) : tensor<i32>, tensor<f32>
  cond {
    %p = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %j, %y : tensor<i32>, tensor<f32>
  }
  return %r#1 : tensor<f32>
}
