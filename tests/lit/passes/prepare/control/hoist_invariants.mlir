// RUN: xgpu-opt %s -p 'hoist-invariants,func.func(trivial-dce)' --split-input-file | FileCheck %s

// The reduction, what it is computed from and what follows from it are the same in each iteration: one more state.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[E:.*]] = stablehlo.exponential %arg1
// CHECK:         %[[S:.*]] = stablehlo.reduce(%[[E]]
// CHECK:         %[[L:.*]] = stablehlo.log %[[S]]
// CHECK:         stablehlo.while(%iterArg = %{{.*}}, %iterArg_0 = %arg0, %iterArg_1 = %arg1, %[[A:.*]] = %[[L]])
// CHECK:         do {
// CHECK-NOT:       stablehlo.reduce
// CHECK:           %[[Y:.*]] = stablehlo.divide %iterArg_0, %[[A]] : tensor<64xf32>
// CHECK:           stablehlo.return %{{.*}}, %[[Y]], %iterArg_1, %[[A]]
func.func @main(%start: tensor<64xf32>, %rates: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %a = %rates) : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %e = stablehlo.exponential %a : tensor<64x64xf32>
    %s = stablehlo.reduce(%e init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %l = stablehlo.log %s : tensor<64xf32>
    %y = stablehlo.divide %x, %l : tensor<64xf32>
    stablehlo.return %j, %y, %a : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64xf32>
}

// -----

// The broadcast has more bytes than what it is computed from, and stays. So do sums of few elements, which threads
// compute by themselves, and what is elementwise.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[S:.*]] = stablehlo.reduce(%arg1
// CHECK:         stablehlo.while({{.*}}, %[[A:[a-zA-Z0-9_]*]] = %[[S]])
// CHECK:         do {
// CHECK-DAG:       stablehlo.broadcast_in_dim %[[A]]
// CHECK-DAG:       stablehlo.cosine %iterArg_1
// CHECK-DAG:       across dimensions = [1] : (tensor<64x2xf32>
func.func @main(%start: tensor<64xf32>, %rates: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %a = %rates) : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.reduce(%a init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
    %v = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
    %w = stablehlo.cosine %a : tensor<64x64xf32>
    %o = stablehlo.slice %w [0:64, 0:2] : (tensor<64x64xf32>) -> tensor<64x2xf32>
    %few = stablehlo.reduce(%o init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x2xf32>, tensor<f32>) -> tensor<64xf32>
    %p = stablehlo.multiply %b, %v : tensor<64x64xf32>
    %q = stablehlo.multiply %p, %w : tensor<64x64xf32>
    %t = stablehlo.reduce(%q init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %y = stablehlo.add %t, %few : tensor<64xf32>
    stablehlo.return %j, %y, %a : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64xf32>
}

// -----

// A library reads the operand: each iteration would store it again. It transposes by itself.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[E:.*]] = stablehlo.exponential %arg1 : tensor<1024x1024xf32>
// CHECK:         stablehlo.while({{.*}}, %[[A:[a-zA-Z0-9_]*]] = %[[E]])
// CHECK:         do {
// CHECK-NOT:       stablehlo.exponential
// CHECK:           %[[T:.*]] = stablehlo.transpose %[[A]]
// CHECK:           stablehlo.dot_general %{{.*}}, %[[T]]
func.func @main(%start: tensor<64x1024xf32>, %rates: tensor<1024x1024xf32>) -> tensor<64x1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %a = %rates) : tensor<i32>, tensor<64x1024xf32>, tensor<1024x1024xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %e = stablehlo.exponential %a : tensor<1024x1024xf32>
    %t = stablehlo.transpose %e, dims = [1, 0] : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %y = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
    stablehlo.return %j, %y, %a : tensor<i32>, tensor<64x1024xf32>, tensor<1024x1024xf32>
  }
  return %r#1 : tensor<64x1024xf32>
}

// -----

// The state changes; and a loop that runs once has nothing to save.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.while
// CHECK:         do {
// CHECK:           stablehlo.reduce
func.func @main(%start: tensor<64xf32>, %rates: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %a = %rates) : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %e = stablehlo.exponential %a : tensor<64x64xf32>
    %s = stablehlo.reduce(%e init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %b = stablehlo.reverse %a, dims = [0] : tensor<64x64xf32>
    %y = stablehlo.add %x, %s : tensor<64xf32>
    stablehlo.return %j, %y, %b : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64xf32>
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.while
// CHECK:         do {
// CHECK:           stablehlo.reduce
func.func @main(%start: tensor<64xf32>, %rates: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %a = %rates) : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  cond {
    %n = stablehlo.constant dense<1> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %e = stablehlo.exponential %a : tensor<64x64xf32>
    %s = stablehlo.reduce(%e init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %y = stablehlo.add %x, %s : tensor<64xf32>
    stablehlo.return %j, %y, %a : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64xf32>
}

// -----

// What is the same in all iterations of both loops is computed before the outer one.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.reduce
// CHECK:         stablehlo.while
// CHECK-NOT:     stablehlo.reduce
func.func @main(%start: tensor<64xf32>, %rates: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %x = %start, %a = %rates) : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  cond {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %in:3 = stablehlo.while(%k = %i, %z = %x, %d = %a) : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
    cond {
      %m = stablehlo.constant dense<20> : tensor<i32>
      %cc = stablehlo.compare LT, %k, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %cc : tensor<i1>
    } do {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %nil = stablehlo.constant dense<0.0> : tensor<f32>
      %kk = stablehlo.add %k, %two : tensor<i32>
      %s = stablehlo.reduce(%d init: %nil) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
      %y = stablehlo.divide %z, %s : tensor<64xf32>
      stablehlo.return %kk, %y, %d : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
    }
    stablehlo.return %j, %in#1, %a : tensor<i32>, tensor<64xf32>, tensor<64x64xf32>
  }
  return %r#1 : tensor<64xf32>
}

// -----

// In a branch it is computed in that branch.

// CHECK-LABEL: func.func @main(
// CHECK:         "stablehlo.case"
// CHECK:           %[[S:.*]] = stablehlo.reduce
// CHECK:           stablehlo.while({{.*}} = %[[S]])
func.func @main(%which: tensor<i32>, %start: tensor<64xf32>, %rates: tensor<64x64xf32>) -> tensor<64xf32> {
  %r = "stablehlo.case"(%which) ({
    stablehlo.return %start : tensor<64xf32>
  }, {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %l:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<64xf32>
    cond {
      %n = stablehlo.constant dense<10> : tensor<i32>
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %none = stablehlo.constant dense<0.0> : tensor<f32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = stablehlo.reduce(%rates init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
      %y = stablehlo.divide %x, %s : tensor<64xf32>
      stablehlo.return %j, %y : tensor<i32>, tensor<64xf32>
    }
    stablehlo.return %l#1 : tensor<64xf32>
  }) : (tensor<i32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

// A product of few terms is computed by the threads that need it for a state, where a reduction keeps the loop from being
// one kernel; sums of what stays are computed before it.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     stablehlo.dot_general
// CHECK:         %[[S:.*]] = stablehlo.reduce
// CHECK:         stablehlo.while({{.*}} = %[[S]])
// CHECK:         } do {
// CHECK:           stablehlo.dot_general
func.func @main(%start: tensor<512x512xf32>, %x: tensor<512x2xf32>, %y: tensor<2x512xf32>, %v: tensor<64x64xf32>, %w: tensor<64xf32>) -> (tensor<512x512xf32>, tensor<64xf32>) {
  %l:2 = stablehlo.while(%a = %start, %b = %w) : tensor<512x512xf32>, tensor<64xf32>
  cond {
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<512x2xf32>, tensor<2x512xf32>) -> tensor<512x512xf32>
    %new = stablehlo.add %a, %d : tensor<512x512xf32>
    %s = stablehlo.reduce(%v init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %t = stablehlo.reduce(%b init: %none) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %u = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %c = stablehlo.divide %u, %s : tensor<64xf32>
    stablehlo.return %new, %c : tensor<512x512xf32>, tensor<64xf32>
  }
  return %l#0, %l#1 : tensor<512x512xf32>, tensor<64xf32>
}

// -----

// A constant, which a library reads as it is, is behind no view: nothing is computed before the loop.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.while
// CHECK:         } do {
// CHECK:           stablehlo.convolution
func.func @main(%start: tensor<2x16x66x66xf32>) -> tensor<2x16x66x66xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %l:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<2x16x66x66xf32>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %kernel = stablehlo.constant dense<0.5> : tensor<16x16x3x3xf32>
    %y = stablehlo.convolution(%x, %kernel) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x16x66x66xf32>, tensor<16x16x3x3xf32>) -> tensor<2x16x66x66xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<2x16x66x66xf32>
  }
  return %l#1 : tensor<2x16x66x66xf32>
}
