// RUN: xgpu-opt %s -p double-buffer-loops --split-input-file | FileCheck %s

// Neighbours are read: the second of two iterations writes to the memory of the state. The barrier is between them, for
// all that the loop computes but counters.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0) : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %iterArg, %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[C]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[D]] = stablehlo.add %iterArg, %[[C]] : tensor<i32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.reverse %iterArg_0, dims = [0] : tensor<8xf32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.optimization_barrier %[[E]] : tensor<8xf32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.add %[[D]], %[[G]] : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.reverse %[[F]], dims = [0] : tensor<8xf32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.add %iterArg, %[[J]] : tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[K]], %[[I]] : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#1 : tensor<8xf32>
func.func @main(%start: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

// -----

// Eleven iterations: neither two nor three divide them, so the first one comes before the loop.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[A]], %[[B]] : tensor<i32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reverse %arg0, dims = [0] : tensor<8xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:    %[[F:.*]]:2 = stablehlo.while(%iterArg = %[[E]], %iterArg_2 = %[[D]]) : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<11> : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.compare LT, %iterArg, %[[G]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[H]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[G]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[H]] = stablehlo.add %iterArg, %[[G]] : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.reverse %iterArg_2, dims = [0] : tensor<8xf32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.optimization_barrier %[[I]] : tensor<8xf32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.add %[[H]], %[[K]] : tensor<i32>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.reverse %[[J]], dims = [0] : tensor<8xf32>
// CHECK-NEXT:      %[[N:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:      %[[O:.*]] = stablehlo.add %iterArg, %[[N]] : tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[O]], %[[M]] : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]#1 : tensor<8xf32>
func.func @main(%start: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<11> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

// -----

// A state becomes another one, as in a wave equation, which needs memory for three: one iteration is three of nine. What
// the last of them only hands on is returned as it was before the barrier.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]]:3 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0, %iterArg_1 = %arg1) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant dense<9> : tensor<i32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %iterArg, %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[C]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[D]] = stablehlo.add %iterArg, %[[C]] : tensor<i32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.subtract %iterArg_1, %iterArg_0 : tensor<8xf32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.optimization_barrier %[[E]] : tensor<8xf32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.add %[[D]], %[[G]] : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.subtract %[[F]], %iterArg_1 : tensor<8xf32>
// CHECK-NEXT:      %[[J:.*]]:2 = stablehlo.optimization_barrier %[[E]], %[[I]] : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.add %[[H]], %[[K]] : tensor<i32>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.subtract %[[J]]#1, %[[J]]#0 : tensor<8xf32>
// CHECK-NEXT:      %[[N:.*]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT:      %[[O:.*]] = stablehlo.add %iterArg, %[[N]] : tensor<i32>
// CHECK-NEXT:      stablehlo.return %[[O]], %[[I]], %[[M]] : tensor<i32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#1, %[[B]]#2 : tensor<8xf32>, tensor<8xf32>
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %a, %y = %b) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<9> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.subtract %y, %x : tensor<8xf32>
    stablehlo.return %j, %y, %z : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  }
  return %r#1, %r#2 : tensor<8xf32>, tensor<8xf32>
}

// -----

// What is computed element by element, or updated in place, is written where the state was; so is what was computed
// from all of it by a reduction, which is a kernel before. Loops of few iterations stay, and those of unknown length.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<1xf32>, %arg2: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]]:3 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0, %iterArg_1 = %arg0) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[C:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[D:.*]] = stablehlo.compare LT, %iterArg, %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[C]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[D]] = stablehlo.add %iterArg, %[[C]] : tensor<i32>
// CHECK-NEXT:      %[[E:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.multiply %iterArg_0, %iterArg_0 : tensor<8xf32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.broadcast_in_dim %[[F]], dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.reduce(%[[G]] init: %[[E]]) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.broadcast_in_dim %[[H]], dims = [] : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.divide %iterArg_0, %[[I]] : tensor<8xf32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.dynamic_update_slice %iterArg_1, %arg1, %iterArg : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
// CHECK-NEXT:      stablehlo.return %[[D]], %[[J]], %[[K]] : tensor<i32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[L:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0) : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[M:.*]] = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT:      %[[D]] = stablehlo.compare LT, %iterArg, %[[M]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[M]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[D]] = stablehlo.add %iterArg, %[[M]] : tensor<i32>
// CHECK-NEXT:      %[[F]] = stablehlo.reverse %iterArg_0, dims = [0] : tensor<8xf32>
// CHECK-NEXT:      stablehlo.return %[[D]], %[[F]] : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[N:.*]]:2 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %arg0) : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[D]] = stablehlo.compare LT, %iterArg, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[D]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[M]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[D]] = stablehlo.add %iterArg, %[[M]] : tensor<i32>
// CHECK-NEXT:      %[[F]] = stablehlo.reverse %iterArg_0, dims = [0] : tensor<8xf32>
// CHECK-NEXT:      stablehlo.return %[[D]], %[[F]] : tensor<i32>, tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[B]]#1, %[[B]]#2, %[[L]]#1, %[[N]]#1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
func.func @main(%start: tensor<8xf32>, %u: tensor<1xf32>, %most: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %v = %start) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %y = stablehlo.multiply %x, %x : tensor<8xf32>
    %wide = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %sum = stablehlo.reduce(%wide init: %none) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    %all = stablehlo.broadcast_in_dim %sum, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %z = stablehlo.divide %x, %all : tensor<8xf32>
    %w = stablehlo.dynamic_update_slice %v, %u, %i : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
    stablehlo.return %j, %z, %w : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  }
  %few:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<8xf32>
  }
  %s:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32>
  cond {
    %c = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<8xf32>
  }
  return %r#1, %r#2, %few#1, %s#1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// The next state is computed of a reduction of the present one, in one kernel. (The sum of 64 is not one thread's.)

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.optimization_barrier
func.func @main(%start: tensor<64xf32>, %rates: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %a = %rates) : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %b = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
    %p = stablehlo.add %a, %b : tensor<64x64xf32>
    %s = stablehlo.reduce(%p init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %y = stablehlo.tanh %s : tensor<64xf32>
    stablehlo.return %j, %y, %a : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64xf32>
}

// -----

// What a product that XLA computes has read is not overwritten by the kernel that follows it.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     stablehlo.optimization_barrier
func.func @main(%start: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<64x64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %y = stablehlo.tanh %p : tensor<64x64xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64x64xf32>
}
