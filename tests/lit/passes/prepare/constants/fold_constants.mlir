// RUN: xgpu-opt %s -p fold-constants --split-input-file | FileCheck %s

// A sort of constants, and what is computed of it, is one constant; of equal numbers one of them.

// CHECK-LABEL: func.func @main(%arg0: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<5> : tensor<3xi32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<[2, 3, 4]> : tensor<3xi32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %arg0, %[[B]] : tensor<3xi32>
// CHECK-NEXT:    return %[[C]], %[[A]] : tensor<3xi32>, tensor<3xi32>
func.func @main(%x: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>) {
  %0 = stablehlo.constant dense<[3, 1, 2]> : tensor<3xi32>
  %five = stablehlo.constant dense<5> : tensor<3xi32>
  %1:2 = "stablehlo.sort"(%0, %five) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %4 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }) : (tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>)
  %one = stablehlo.constant dense<1> : tensor<3xi32>
  %2 = stablehlo.add %1#0, %one : tensor<3xi32>
  %3 = stablehlo.add %x, %2 : tensor<3xi32>
  return %3, %1#1 : tensor<3xi32>, tensor<3xi32>
}

// -----

// A number is folded, not the array that it is broadcast to: that would need memory.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x8xi32>) -> tensor<2x8xi32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<[1, 5]> : tensor<2xi32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.broadcast_in_dim %[[A]], dims = [0] : (tensor<2xi32>) -> tensor<2x8xi32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %arg0, %[[B]] : tensor<2x8xi32>
// CHECK-NEXT:    return %[[C]] : tensor<2x8xi32>
func.func @main(%x: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %0 = stablehlo.iota dim = 1 : tensor<2x2xi32>
  %1 = stablehlo.iota dim = 0 : tensor<2x2xi32>
  %2 = stablehlo.add %1, %1 : tensor<2x2xi32>
  %3 = stablehlo.add %0, %2 : tensor<2x2xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x2xi32>, tensor<i32>) -> tensor<2xi32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xi32>) -> tensor<2x8xi32>
  %6 = stablehlo.add %x, %5 : tensor<2x8xi32>
  return %6 : tensor<2x8xi32>
}

// -----

// Indices are folded, also where a kernel could compute them; a mask is not.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dynamic_slice %arg0, %[[A]], sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.iota dim = 0 : tensor<2xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.multiply %[[B]], %[[C]] : tensor<2xf32>
// CHECK-NEXT:    return %[[D]] : tensor<2xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense<-1> : tensor<i32>
  %1 = stablehlo.constant dense<8> : tensor<i32>
  %2 = stablehlo.add %0, %1 : tensor<i32>
  %3 = stablehlo.dynamic_slice %x, %2, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
  %4 = stablehlo.iota dim = 0 : tensor<2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<2xf32>
  return %5 : tensor<2xf32>
}

// -----

// A sum of floats is rounded in an order that is the kernel's.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.reduce
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.add %1, %x : tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Where a selection's condition is one number, it is what that selects, however large it is.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096x4096xf32>, %arg1: tensor<4096x4096xf32>, %arg2: tensor<4096x4096xf32>)
// CHECK-NOT:     stablehlo.select
// CHECK:         return %arg1, %arg0 : tensor<4096x4096xf32>, tensor<4096x4096xf32>
func.func @main(%x: tensor<4096x4096xf32>, %y: tensor<4096x4096xf32>, %z: tensor<4096x4096xf32>) -> (tensor<4096x4096xf32>, tensor<4096x4096xf32>) {
  %a = stablehlo.constant dense<3.0> : tensor<f32>
  %b = stablehlo.constant dense<1.0e+01> : tensor<4096x4096xf32>
  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<4096x4096xf32>
  %1 = stablehlo.compare LT, %b, %0, FLOAT : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xi1>
  %2 = stablehlo.not %1 : tensor<4096x4096xi1>
  %3 = stablehlo.select %1, %z, %y : tensor<4096x4096xi1>, tensor<4096x4096xf32>
  %4 = stablehlo.select %2, %x, %z : tensor<4096x4096xi1>, tensor<4096x4096xf32>
  return %3, %4 : tensor<4096x4096xf32>, tensor<4096x4096xf32>
}

// -----

// A condition that an argument decides, or one of several numbers, is left.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<i1>)
// CHECK-COUNT-2: stablehlo.select
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %a = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %0 = stablehlo.select %a, %x, %y : tensor<2xi1>, tensor<2xf32>
  %1 = stablehlo.select %p, %0, %y : tensor<i1>, tensor<2xf32>
  return %1 : tensor<2xf32>
}
