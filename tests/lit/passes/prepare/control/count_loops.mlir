// RUN: xgpu-opt %s -p count-loops --split-input-file | FileCheck %s

// A loop of known length has a counter of the host's own; branches are marked.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>, %arg1: tensor<i1>) -> (tensor<i32>, tensor<f32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant {xgpu.fallback = "the host counts iterations"} dense<5> : tensor<i64>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant {xgpu.fallback = "the host counts iterations"} dense<0> : tensor<i64>
// CHECK-NEXT:    %[[D:.*]]:4 = stablehlo.while(%iterArg = %[[A]], %iterArg_2 = %arg0, %iterArg_3 = %[[C]], %iterArg_4 = %[[B]]) : tensor<i32>, tensor<f32>, tensor<i64>, tensor<i64> attributes {xgpu.host, xgpu.trips = 5 : i64}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[E:.*]] = stablehlo.compare LT, %iterArg_3, %iterArg_4 : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[E]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[F:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.add %iterArg, %[[F]] : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = "stablehlo.if"(%arg1) ({
// CHECK-NEXT:        %[[I:.*]] = stablehlo.add %iterArg_2, %iterArg_2 : tensor<f32>
// CHECK-NEXT:        stablehlo.return %[[I]] : tensor<f32>
// CHECK-NEXT:      }, {
// CHECK-NEXT:        stablehlo.return %iterArg_2 : tensor<f32>
// CHECK-NEXT:      }) {xgpu.host} : (tensor<i1>) -> tensor<f32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.constant {xgpu.fallback = "the host counts iterations"} dense<1> : tensor<i64>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.add %iterArg_3, %[[J]] {xgpu.fallback = "the host counts iterations"} : tensor<i64>
// CHECK-NEXT:      stablehlo.return %[[G]], %[[H]], %[[K]], %iterArg_4 : tensor<i32>, tensor<f32>, tensor<i64>, tensor<i64>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[D]]#0, %[[D]]#1 : tensor<i32>, tensor<f32>
func.func @main(%start: tensor<f32>, %p: tensor<i1>) -> (tensor<i32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<f32>
  cond {
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %less = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %j = stablehlo.add %i, %two : tensor<i32>
    %y = "stablehlo.if"(%p) ({
      %twice = stablehlo.add %x, %x : tensor<f32>
      stablehlo.return %twice : tensor<f32>
    }, {
      stablehlo.return %x : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    stablehlo.return %j, %y : tensor<i32>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<f32>
}

// -----

// A loop that never runs is what it is given.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:    return %arg0 : tensor<f32>
func.func @main(%start: tensor<f32>) -> tensor<f32> {
  %n = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %x = %start) : tensor<i32>, tensor<f32>
  cond {
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %less = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %j, %y : tensor<i32>, tensor<f32>
  }
  return %r#1 : tensor<f32>
}

// -----

// A loop that is one kernel gets the mark alone.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0) : tensor<i32>, tensor<8xf32> attributes {xgpu.host, xgpu.recurrence}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %iterArg, %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.add %iterArg, %[[E]] : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.sine %iterArg_0 : tensor<8xf32>
// CHECK-NEXT:      stablehlo.return %[[F]], %[[G]] : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#1 : tensor<8xf32>
func.func @main(%start: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32> attributes {xgpu.recurrence}
  cond {
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %less = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.sine %x : tensor<8xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

// -----

// How often a loop runs that counts to a value is known when it begins.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<i64>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i64>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.subtract %[[A]], %[[B]] : tensor<i64>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant {xgpu.fallback = "the host counts iterations"} dense<0> : tensor<i64>
// CHECK-NEXT:    %[[E:.*]]:4 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %arg0, %iterArg_1 = %[[D]], %iterArg_2 = %[[C]]) : tensor<i32>, tensor<f32>, tensor<i64>, tensor<i64> attributes {xgpu.host}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[F:.*]] = stablehlo.compare LT, %iterArg_1, %iterArg_2 : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[F]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.add %iterArg, %[[G]] : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.add %iterArg_0, %iterArg_0 : tensor<f32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.constant {xgpu.fallback = "the host counts iterations"} dense<1> : tensor<i64>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.add %iterArg_1, %[[J]] {xgpu.fallback = "the host counts iterations"} : tensor<i64>
// CHECK-NEXT:      stablehlo.return %[[H]], %[[I]], %[[K]], %iterArg_2 : tensor<i32>, tensor<f32>, tensor<i64>, tensor<i64>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[E]]#1 : tensor<f32>
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

// -----

// So does a barrier: what it takes must be in memory.

// CHECK-LABEL: func.func @main(%arg0: tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.add %arg0, %arg0 : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.optimization_barrier {xgpu.host} %[[A]] : tensor<f32>
// CHECK-NEXT:    return %[[B]] : tensor<f32>
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %y = stablehlo.add %x, %x : tensor<f32>
  %z = stablehlo.optimization_barrier %y : tensor<f32>
  return %z : tensor<f32>
}
