// RUN: xgpu-opt %s -p merge-counters --split-input-file | FileCheck %s

// A counter that goes down is what it starts with, less the one that is compared.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]]:3 = stablehlo.while(%iterArg = %[[A]], %iterArg_1 = %[[B]], %iterArg_2 = %arg0) : tensor<i32>, tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[D:.*]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.compare LT, %iterArg, %[[D]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[E]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[D]] = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT:      %[[E]] = stablehlo.subtract %[[D]], %iterArg : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<1xf32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.dynamic_update_slice %iterArg_2, %[[G]], %[[E]] : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.subtract %[[E]], %[[F]] : tensor<i32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.add %iterArg, %[[F]] : tensor<i32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.add %iterArg_1, %[[K]] : tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[J]], %[[L]], %[[H]] : tensor<i32>, tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[C]]#2 : tensor<8xf32>
func.func @main(%start: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %j = %seven, %x = %start) : tensor<i32>, tensor<i32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %u = stablehlo.constant dense<2.0> : tensor<1xf32>
    %y = stablehlo.dynamic_update_slice %x, %u, %j : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
    %k = stablehlo.subtract %j, %one : tensor<i32>
    %h = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %h, %k, %y : tensor<i32>, tensor<i32>, tensor<8xf32>
  }
  return %r#2 : tensor<8xf32>
}

// -----

// Three times the one that is compared, which starts with 2, and 1; one whose step is no multiple stays as it is.

// CHECK-LABEL: func.func @main(%arg0: tensor<32xf32>) -> tensor<32xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]]:4 = stablehlo.while(%iterArg = %[[A]], %iterArg_1 = %[[B]], %iterArg_2 = %[[A]], %iterArg_3 = %arg0) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<32xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[D:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.compare GT, %[[D]], %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[E]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[D]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT:      %[[E]] = stablehlo.multiply %iterArg, %[[D]] : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.add %[[E]], %[[F]] : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.constant dense<6> : tensor<i32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.dynamic_slice %iterArg_3, %iterArg_2, sizes = [1] : (tensor<32xf32>, tensor<i32>) -> tensor<1xf32>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.dynamic_update_slice %iterArg_3, %[[K]], %[[G]] : (tensor<32xf32>, tensor<1xf32>, tensor<i32>) -> tensor<32xf32>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.add %iterArg, %[[I]] : tensor<i32>
// CHECK-NEXT:      %[[N:.*]] = stablehlo.add %[[G]], %[[J]] : tensor<i32>
// CHECK-NEXT:      %[[O:.*]] = stablehlo.add %iterArg_2, %[[H]] : tensor<i32>
// CHECK-NEXT:      %[[P:.*]] = stablehlo.constant dense<6> : tensor<i32>
// CHECK-NEXT:      %[[Q:.*]] = stablehlo.add %iterArg_1, %[[P]] : tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[M]], %[[Q]], %[[O]], %[[L]] : tensor<i32>, tensor<i32>, tensor<i32>, tensor<32xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[C]]#3 : tensor<32xf32>
func.func @main(%start: tensor<32xf32>) -> tensor<32xf32> {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %r:4 = stablehlo.while(%i = %two, %j = %seven, %k = %two, %x = %start) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<32xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare GT, %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %by = stablehlo.constant dense<2> : tensor<i32>
    %six = stablehlo.constant dense<6> : tensor<i32>
    %u = stablehlo.dynamic_slice %x, %k, sizes = [1] : (tensor<32xf32>, tensor<i32>) -> tensor<1xf32>
    %y = stablehlo.dynamic_update_slice %x, %u, %j : (tensor<32xf32>, tensor<1xf32>, tensor<i32>) -> tensor<32xf32>
    %h = stablehlo.add %i, %by : tensor<i32>
    %l = stablehlo.add %j, %six : tensor<i32>
    %m = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %h, %l, %m, %y : tensor<i32>, tensor<i32>, tensor<i32>, tensor<32xf32>
  }
  return %r#3 : tensor<32xf32>
}

// -----

// The condition compares two counters: neither is kept.

// CHECK-LABEL: func.func @main() -> (tensor<i32>, tensor<i32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_1 = %[[B]]) : tensor<i32>, tensor<i32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %iterArg, %iterArg_1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[D]] = stablehlo.add %iterArg, %[[E]] : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.subtract %iterArg_1, %[[E]] : tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[D]], %[[F]] : tensor<i32>, tensor<i32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[C]]#0, %[[C]]#1 : tensor<i32>, tensor<i32>
func.func @main() -> (tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %j = %ten) : tensor<i32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %h = stablehlo.add %i, %one : tensor<i32>
    %k = stablehlo.subtract %j, %one : tensor<i32>
    stablehlo.return %h, %k : tensor<i32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}
