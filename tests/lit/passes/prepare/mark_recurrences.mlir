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

// -----

// Each number depends on both of its row: there is a state for either.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x2xf32>) -> tensor<64x2xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.slice %arg0 [0:64, 0:1] : (tensor<64x2xf32>) -> tensor<64x1xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reshape %[[B]] : (tensor<64x1xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %arg0 [0:64, 1:2] : (tensor<64x2xf32>) -> tensor<64x1xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.reshape %[[D]] : (tensor<64x1xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[F:.*]]:3 = stablehlo.while(%iterArg = %[[A]], %iterArg_0 = %[[C]], %iterArg_1 = %[[E]]) : tensor<i32>, tensor<64xf32>, tensor<64xf32> attributes {xgpu.recurrence}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<10> : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.compare LT, %iterArg, %[[G]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[H]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[I:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.add %iterArg, %[[I]] : tensor<i32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.sine %iterArg_1 : tensor<64xf32>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.add %[[K]], %iterArg_0 : tensor<64xf32>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.sine %iterArg_0 : tensor<64xf32>
// CHECK-NEXT:      %[[N:.*]] = stablehlo.add %[[M]], %iterArg_1 : tensor<64xf32>
// CHECK-NEXT:      stablehlo.return %[[J]], %[[L]], %[[N]] : tensor<i32>, tensor<64xf32>, tensor<64xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[O:.*]] = stablehlo.reshape %[[F]]#1 : (tensor<64xf32>) -> tensor<64x1xf32>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.reshape %[[F]]#2 : (tensor<64xf32>) -> tensor<64x1xf32>
// CHECK-NEXT:    %[[Q:.*]] = stablehlo.concatenate %[[O]], %[[P]], dim = 1 : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x2xf32>
// CHECK-NEXT:    return %[[Q]] : tensor<64x2xf32>
func.func @main(%x: tensor<64x2xf32>) -> tensor<64x2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<64x2xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.reverse %y, dims = [1] : tensor<64x2xf32>
    %3 = stablehlo.sine %2 : tensor<64x2xf32>
    %4 = stablehlo.add %3, %y : tensor<64x2xf32>
    stablehlo.return %1, %4 : tensor<i32>, tensor<64x2xf32>
  }
  return %0#1 : tensor<64x2xf32>
}

// -----

// An array is written slice by slice, and the slice before is read: that is the state, and what is written is stacked up.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x9xf32>, %arg1: tensor<4x9xf32>) -> tensor<4x9xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.broadcast_in_dim %[[B]], dims = [] : (tensor<f32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %arg1 [0:4, 0:1] : (tensor<4x9xf32>) -> tensor<4x1xf32>
// CHECK-NEXT:    %[[E:.*]]:3 = stablehlo.while(%iterArg = %[[A]], %iterArg_2 = %[[C]], %iterArg_3 = %[[D]]) : tensor<i32>, tensor<4x8xf32>, tensor<4x1xf32> attributes {xgpu.recurrence}
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[F:.*]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.compare LT, %iterArg, %[[F]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:      stablehlo.return %[[G]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[F]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:      %[[G]] = stablehlo.add %iterArg, %[[F]] : tensor<i32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.dynamic_slice %arg0, %[[H]], %[[G]], sizes = [4, 1] : (tensor<4x9xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.add %[[I]], %iterArg_3 : tensor<4x1xf32>
// CHECK-NEXT:      %[[K:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.add %iterArg, %[[K]] : tensor<i32>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:      %[[N:.*]] = stablehlo.dynamic_update_slice %iterArg_2, %[[J]], %[[M]], %[[L]] : (tensor<4x8xf32>, tensor<4x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
// CHECK-NEXT:      stablehlo.return %[[G]], %[[N]], %[[J]] : tensor<i32>, tensor<4x8xf32>, tensor<4x1xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[O:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[P:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:    %[[Q:.*]] = stablehlo.dynamic_update_slice %arg1, %[[E]]#1, %[[O]], %[[P]] : (tensor<4x9xf32>, tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x9xf32>
// CHECK-NEXT:    return %[[Q]] : tensor<4x9xf32>
func.func @main(%x: tensor<4x9xf32>, %start: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %y = %start) : tensor<i32>, tensor<4x9xf32>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %new = stablehlo.dynamic_slice %x, %none, %j, sizes = [4, 1] : (tensor<4x9xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
    %before = stablehlo.dynamic_slice %y, %none, %i, sizes = [4, 1] : (tensor<4x9xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
    %sum = stablehlo.add %new, %before : tensor<4x1xf32>
    %z = stablehlo.dynamic_update_slice %y, %sum, %none, %j : (tensor<4x9xf32>, tensor<4x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x9xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<4x9xf32>
  }
  return %r#1 : tensor<4x9xf32>
}

// -----

// An element leaves the loop as soon as its mask is false, as it stays what it is then; the count is nobody's result.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK-SAME: xgpu.recurrence
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %false = stablehlo.constant dense<false> : tensor<i1>
    %limit = stablehlo.constant dense<9.0> : tensor<64xf32>
    %mask = stablehlo.compare LT, %y, %limit : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %any = stablehlo.reduce(%mask init: %false) applies stablehlo.or across dimensions = [0] : (tensor<64xi1>, tensor<i1>) -> tensor<i1>
    %few = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %more = stablehlo.and %few, %any : tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %limit = stablehlo.constant dense<9.0> : tensor<64xf32>
    %mask = stablehlo.compare LT, %y, %limit : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %twice = stablehlo.add %y, %y : tensor<64xf32>
    %new = stablehlo.select %mask, %twice, %y : tensor<64xi1>, tensor<64xf32>
    stablehlo.return %j, %new : tensor<i32>, tensor<64xf32>
  }
  return %0#1 : tensor<64xf32>
}

// -----

// Elements go on changing until none needs to.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK-NOT: xgpu.recurrence
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.while(%y = %x) : tensor<64xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %limit = stablehlo.constant dense<9.0> : tensor<64xf32>
    %mask = stablehlo.compare LT, %y, %limit : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %any = stablehlo.reduce(%mask init: %false) applies stablehlo.or across dimensions = [0] : (tensor<64xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %twice = stablehlo.add %y, %y : tensor<64xf32>
    stablehlo.return %twice : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// -----

// A condition that is part of the state, and follows from the next state alone, is taken out of it again. The mask is
// found behind reductions in several steps.

// CHECK-LABEL: func.func @main(%arg0: tensor<64xf32>) -> tensor<64xf32>
// CHECK:         %[[R:.*]] = stablehlo.while(%iterArg = %arg0) : tensor<64xf32> attributes {xgpu.recurrence}
// CHECK-NEXT:    cond {
// CHECK:           stablehlo.compare LT, %iterArg,
// CHECK:           stablehlo.reduce
// CHECK:         } do {
// CHECK:           stablehlo.select
// CHECK-NOT:       stablehlo.reduce
// CHECK:         return %[[R]]
func.func @main(%arg0: tensor<64xf32>) -> tensor<64xf32> {
  %cst = stablehlo.constant dense<9.000000e+00> : tensor<64xf32>
  %c = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.compare LT, %arg0, %cst : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.or across dimensions = [0] : (tensor<64xi1>, tensor<i1>) -> tensor<i1>
  %2:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %1) : tensor<64xf32>, tensor<i1> attributes {xgpu.rotated}
  cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %cst_1 = stablehlo.constant dense<9.000000e+00> : tensor<64xf32>
    %3 = stablehlo.compare LT, %iterArg, %cst_1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %4 = stablehlo.add %iterArg, %cst_1 : tensor<64xf32>
    %5 = stablehlo.select %3, %4, %iterArg : tensor<64xi1>, tensor<64xf32>
    %cst_2 = stablehlo.constant dense<9.000000e+00> : tensor<64xf32>
    %none = stablehlo.constant dense<false> : tensor<i1>
    %6 = stablehlo.compare LT, %5, %cst_2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %a = stablehlo.slice %6 [0:32] : (tensor<64xi1>) -> tensor<32xi1>
    %b = stablehlo.slice %6 [32:64] : (tensor<64xi1>) -> tensor<32xi1>
    %c_4 = stablehlo.reshape %a : (tensor<32xi1>) -> tensor<4x8xi1>
    %d = stablehlo.reduce(%c_4 init: %none) applies stablehlo.or across dimensions = [1] : (tensor<4x8xi1>, tensor<i1>) -> tensor<4xi1>
    %e = stablehlo.concatenate %d, %b, dim = 0 : (tensor<4xi1>, tensor<32xi1>) -> tensor<36xi1>
    %7 = stablehlo.reduce(%e init: %none) applies stablehlo.or across dimensions = [0] : (tensor<36xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %5, %7 : tensor<64xf32>, tensor<i1>
  }
  return %2#0 : tensor<64xf32>
}
