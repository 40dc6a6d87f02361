// RUN: xgpu-opt %s -p drop-unused-state --split-input-file | FileCheck %s

// Nobody needs the counter, nor what else only its own next value needs.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0> : tensor<i64>
// CHECK-NEXT:    %[[C:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %[[B]]) : tensor<f32>, tensor<i64> attributes {xgpu.host, xgpu.trips = 10 : i64}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[D:.*]] = stablehlo.constant dense<10> : tensor<i64>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.compare LT, %iterArg_1, %[[D]] : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[E]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[F:.*]] = stablehlo.add %iterArg, %arg0 : tensor<f32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<1> : tensor<i64>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.add %iterArg_1, %[[G]] {xgpu.fallback = "the host counts iterations"} : tensor<i64>
// CHECK-NEXT:      stablehlo.return %[[F]], %[[H]] : tensor<f32>, tensor<i64>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[C]]#0 : tensor<f32>
func.func @main(%start: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<i64>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %n = %none) : tensor<i32>, tensor<f32>, tensor<i64> attributes {xgpu.host, xgpu.trips = 10 : i64}
  cond {
    %ten = stablehlo.constant dense<10> : tensor<i64>
    %less = stablehlo.compare LT, %n, %ten : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.add %x, %start : tensor<f32>
    %a = stablehlo.constant dense<1> : tensor<i64>
    %m = stablehlo.add %n, %a {xgpu.fallback = "the host counts iterations"} : tensor<i64>
    stablehlo.return %j, %y, %m : tensor<i32>, tensor<f32>, tensor<i64>
  }
  return %r#1 : tensor<f32>
}

// -----

// The inner loop needs the counter of the outer one no more, so that the outer one does not either; a branch needs %x.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>, %arg1: tensor<i1>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<f32>, tensor<i1> attributes {xgpu.host}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[C:.*]]:2 = stablehlo.while(%iterArg_1 = %iterArg, %iterArg_2 = %iterArg_0) : tensor<f32>, tensor<i1> attributes {xgpu.host}
// CHECK-NEXT:      cond {
// CHECK-NEXT:        stablehlo.return %iterArg_2 : tensor<i1>
// CHECK-NEXT:      } do {
// CHECK-NEXT:        %[[D:.*]] = "stablehlo.if"(%iterArg_2) ({
// CHECK-NEXT:          %[[E:.*]] = stablehlo.add %iterArg, %iterArg_1 : tensor<f32>
// CHECK-NEXT:          stablehlo.return %[[E]] : tensor<f32>
// CHECK-NEXT:        }, {
// CHECK-NEXT:          stablehlo.return %iterArg_1 : tensor<f32>
// CHECK-NEXT:        }) {xgpu.host} : (tensor<i1>) -> tensor<f32>
// CHECK-NEXT:        %[[F:.*]] = stablehlo.compare LT, %[[D]], %iterArg : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:        stablehlo.return %[[D]], %[[F]] : tensor<f32>, tensor<i1>
// CHECK-NEXT:      }
// CHECK-NEXT:      stablehlo.return %[[C]]#0, %[[C]]#1 : tensor<f32>, tensor<i1>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#0 : tensor<f32>
func.func @main(%start: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %q = %p) : tensor<i32>, tensor<f32>, tensor<i1> attributes {xgpu.host}
  cond {
    stablehlo.return %q : tensor<i1>
  } do {
    %s:3 = stablehlo.while(%k = %i, %z = %x, %o = %q) : tensor<i32>, tensor<f32>, tensor<i1> attributes {xgpu.host}
    cond {
      stablehlo.return %o : tensor<i1>
    } do {
      %l = stablehlo.add %k, %i : tensor<i32>
      %w = "stablehlo.if"(%o) ({
        %twice = stablehlo.add %x, %z : tensor<f32>
        stablehlo.return %twice : tensor<f32>
      }, {
        stablehlo.return %z : tensor<f32>
      }) {xgpu.host} : (tensor<i1>) -> tensor<f32>
      %t = stablehlo.compare LT, %w, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %l, %w, %t : tensor<i32>, tensor<f32>, tensor<i1>
    }
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s#1, %s#2 : tensor<i32>, tensor<f32>, tensor<i1>
  }
  return %r#1 : tensor<f32>
}

// -----

// XLA runs the loop: it stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>, %arg1: tensor<i1>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<f32>, tensor<i1>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[B:.*]] = stablehlo.add %iterArg, %iterArg : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[B]], %iterArg_0 : tensor<f32>, tensor<i1>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %arg0 : tensor<f32>
func.func @main(%start: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
  %r:2 = stablehlo.while(%x = %start, %q = %p) : tensor<f32>, tensor<i1>
  cond {
    stablehlo.return %q : tensor<i1>
  } do {
    %y = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %y, %q : tensor<f32>, tensor<i1>
  }
  return %start : tensor<f32>
}
