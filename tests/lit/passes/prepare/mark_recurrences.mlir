// RUN: xgpu-opt %s -p mark-recurrences --split-input-file | FileCheck %s

// Each element follows from itself, and where the counter ends is known.

// CHECK-LABEL: func.func @main(%arg0: tensor<64xf32>) -> (tensor<i32>, tensor<64xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_1 = %arg0) : tensor<i32>, tensor<64xf32> attributes {xgpu.recurrence}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[D:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.compare LT, %iterArg, %[[D]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[E]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[F:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.add %iterArg, %[[F]] : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.sine %iterArg_1 : tensor<64xf32>
// CHECK-NEXT:      stablehlo.return %[[G]], %[[H]] : tensor<i32>, tensor<64xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]], %[[C]]#1 : tensor<i32>, tensor<64xf32>
func.func @main(%x: tensor<64xf32>) -> (tensor<i32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.sine %y : tensor<64xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<64xf32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<64xf32>
}

// -----

// The elements are of each other; what the input claims is forgotten.

// CHECK-LABEL: func.func @main(%arg0: tensor<64xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0) : tensor<i32>, tensor<64xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %iterArg, %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.add %iterArg, %[[E]] : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.reverse %iterArg_0, dims = [0] : tensor<64xf32>
// CHECK-NEXT:      stablehlo.return %[[F]], %[[G]] : tensor<i32>, tensor<64xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#1 : tensor<64xf32>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<64xf32> attributes {xgpu.recurrence}
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.reverse %y, dims = [0] : tensor<64xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<64xf32>
  }
  return %0#1 : tensor<64xf32>
}
