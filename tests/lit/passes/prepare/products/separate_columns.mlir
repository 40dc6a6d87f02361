// RUN: xgpu-opt %s -p separate-columns --split-input-file | FileCheck %s

// A column beside logits: reductions combine both parts, slices take one. What is repeated along the rows is so for both.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     -> tensor<8x5xf32>
// CHECK:         %[[X:.*]] = stablehlo.dot_general
// CHECK:         %[[M:.*]] = stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.maximum
// CHECK:         %[[S:.*]] = stablehlo.reshape %arg2 : (tensor<8x1xf32>) -> tensor<8xf32>
// CHECK:         %[[L:.*]] = stablehlo.maximum %[[M]], %[[S]] : tensor<8xf32>
// CHECK:         %[[D:.*]] = stablehlo.subtract %[[X]], %{{.*}} : tensor<8x4xf32>
// CHECK:         %[[DS:.*]] = stablehlo.subtract %arg2, %{{.*}} : tensor<8x1xf32>
// CHECK:         %[[E:.*]] = stablehlo.exponential %[[D]] : tensor<8x4xf32>
// CHECK:         stablehlo.exponential %[[DS]] : tensor<8x1xf32>
// CHECK:         %[[B:.*]] = stablehlo.slice %arg3 [0:8, 0:4] : (tensor<8x5xf32>) -> tensor<8x4xf32>
// CHECK:         %[[P:.*]] = stablehlo.multiply %[[E]], %[[B]] : tensor<8x4xf32>
// CHECK:         return %[[P]], %[[L]]
func.func @main(%q: tensor<8x2xf32>, %k: tensor<4x2xf32>, %s: tensor<8x1xf32>, %b: tensor<8x5xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.concatenate %x, %s, dim = 1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x5xf32>
  %m = stablehlo.reduce(%c init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x5xf32>
  %d = stablehlo.subtract %c, %mb : tensor<8x5xf32>
  %e = stablehlo.exponential %d : tensor<8x5xf32>
  %f = stablehlo.multiply %e, %b : tensor<8x5xf32>
  %p = stablehlo.slice %f [0:8, 0:4] : (tensor<8x5xf32>) -> tensor<8x4xf32>
  return %p, %m : tensor<8x4xf32>, tensor<8xf32>
}

// -----

// What has no column in a gradient is padded: the column comes first here. The other part of a slice is the column.
// CHECK-LABEL: func.func @main
// CHECK:         %[[G:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK:         %[[Z:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
// CHECK:         %[[A:.*]] = stablehlo.add %[[Z]], %arg2 : tensor<8x1xf32>
// CHECK:         %[[B:.*]] = stablehlo.add %[[G]], %[[G]] : tensor<8x4xf32>
// CHECK:         %[[R:.*]] = stablehlo.reshape %[[A]]
// CHECK:         %[[T:.*]] = stablehlo.reduce(%[[B]] init
// CHECK:         %[[S:.*]] = stablehlo.add %[[R]], %[[T]] : tensor<8xf32>
// CHECK:         return %[[S]], %[[A]]
func.func @main(%q: tensor<8x2xf32>, %k: tensor<4x2xf32>, %s: tensor<8x1xf32>) -> (tensor<8xf32>, tensor<8x1xf32>) {
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.concatenate %s, %x, dim = 1 : (tensor<8x1xf32>, tensor<8x4xf32>) -> tensor<8x5xf32>
  %g = stablehlo.pad %x, %zero, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x5xf32>
  %a = stablehlo.add %g, %c : tensor<8x5xf32>
  %t = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %p = stablehlo.slice %a [0:8, 0:1] : (tensor<8x5xf32>) -> tensor<8x1xf32>
  return %t, %p : tensor<8xf32>, tensor<8x1xf32>
}

// -----

// Something reads both parts together; a slice has some of both; no slice takes a part; no part is made of a product.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: stablehlo.concatenate
// CHECK-NOT:     x4xf32>) -> tensor<8xf32>
func.func @main(%q: tensor<8x2xf32>, %k: tensor<4x2xf32>, %s: tensor<8x1xf32>, %y: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8x4xf32>, tensor<8x5xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>) {
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c0 = stablehlo.concatenate %x, %s, dim = 1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x5xf32>
  %r0 = stablehlo.reduce(%c0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %p0 = stablehlo.slice %c0 [0:8, 0:4] : (tensor<8x5xf32>) -> tensor<8x4xf32>
  %t0 = stablehlo.reverse %c0, dims = [1] : tensor<8x5xf32>
  %c1 = stablehlo.concatenate %x, %s, dim = 1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x5xf32>
  %r1 = stablehlo.reduce(%c1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %p1 = stablehlo.slice %c1 [0:8, 1:5] : (tensor<8x5xf32>) -> tensor<8x4xf32>
  %c2 = stablehlo.concatenate %x, %s, dim = 1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x5xf32>
  %r2 = stablehlo.reduce(%c2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %c3 = stablehlo.concatenate %y, %s, dim = 1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x5xf32>
  %r3 = stablehlo.reduce(%c3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %p3 = stablehlo.slice %c3 [0:8, 0:4] : (tensor<8x5xf32>) -> tensor<8x4xf32>
  return %r0, %p0, %t0, %r1, %p1, %r2, %r3, %p3 : tensor<8xf32>, tensor<8x4xf32>, tensor<8x5xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>
}

// -----

// What is returned from a loop's body is read by an operation without results.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.concatenate
func.func @main(%q: tensor<4x2xf32>, %v: tensor<2xf32>, %s: tensor<1xf32>, %n: tensor<i32>) -> (tensor<i32>, tensor<5xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %y = stablehlo.constant dense<0.0> : tensor<5xf32>
  %r:2 = stablehlo.while(%i = %zero, %x = %y) : tensor<i32>, tensor<5xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %p = stablehlo.dot_general %q, %v, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4xf32>
    %c = stablehlo.concatenate %s, %p, dim = 0 : (tensor<1xf32>, tensor<4xf32>) -> tensor<5xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %a = stablehlo.add %c, %x : tensor<5xf32>
    stablehlo.return %next, %a : tensor<i32>, tensor<5xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<5xf32>
}
