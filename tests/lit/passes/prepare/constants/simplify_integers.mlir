// RUN: xgpu-opt %s -p simplify-integers --split-input-file \
// RUN:   | xgpu-opt -p 'func.func(trivial-dce),cse' --split-input-file | FileCheck %s

// Indices of iota are in bounds, and none is negative.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xi32>
// CHECK:         %[[I:.*]] = stablehlo.iota dim = 0 : tensor<8xi32>
// CHECK-NEXT:    return %[[I]] : tensor<8xi32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xi32> {
  %zero = stablehlo.constant dense<0> : tensor<8xi32>
  %size = stablehlo.constant dense<8> : tensor<8xi32>
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.compare LT, %0, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %2 = stablehlo.add %0, %size : tensor<8xi32>
  %3 = stablehlo.select %1, %2, %0 : tensor<8xi1>, tensor<8xi32>
  return %3 : tensor<8xi32>
}

// -----

// x % 16 of any number, as jax.numpy writes it.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xi32>) -> tensor<8xi32>
// CHECK:         %[[MASK:.*]] = stablehlo.constant dense<15> : tensor<8xi32>
// CHECK:         %[[R:.*]] = stablehlo.and %arg0, %[[MASK]] : tensor<8xi32>
// CHECK:         return %[[R]] : tensor<8xi32>
func.func @main(%x: tensor<8xi32>) -> tensor<8xi32> {
  %zero = stablehlo.constant dense<0> : tensor<8xi32>
  %size = stablehlo.constant dense<16> : tensor<8xi32>
  %0 = stablehlo.remainder %x, %size : tensor<8xi32>
  %1 = stablehlo.compare NE, %0, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %2 = stablehlo.compare LT, %0, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %3 = stablehlo.compare LT, %size, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %4 = stablehlo.compare NE, %2, %3, UNSIGNED : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
  %5 = stablehlo.and %4, %1 : tensor<8xi1>
  %6 = stablehlo.add %0, %size : tensor<8xi32>
  %7 = stablehlo.select %5, %6, %0 : tensor<8xi1>, tensor<8xi32>
  return %7 : tensor<8xi32>
}

// -----

// x // 16 of any number; by 6 it stays, but for the signs.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
// CHECK-DAG:     %[[SIX:.*]] = stablehlo.constant dense<6> : tensor<8xi32>
// CHECK-DAG:     %[[FOUR:.*]] = stablehlo.constant dense<4> : tensor<8xi32>
// CHECK-DAG:     %[[Q:.*]] = stablehlo.shift_right_arithmetic %arg0, %[[FOUR]] : tensor<8xi32>
// CHECK-DAG:     %[[R:.*]] = stablehlo.remainder %arg0, %[[SIX]] : tensor<8xi32>
// CHECK-DAG:     %[[UNEVEN:.*]] = stablehlo.compare NE, %[[R]]
// CHECK-DAG:     %[[LOW:.*]] = stablehlo.compare LT, %arg0
// CHECK:         %[[BOTH:.*]] = stablehlo.and %[[LOW]], %[[UNEVEN]] : tensor<8xi1>
// CHECK:         %[[P:.*]] = stablehlo.select %[[BOTH]]
// CHECK:         return %[[Q]], %[[P]]
func.func @main(%x: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<8xi32>
  %one = stablehlo.constant dense<1> : tensor<8xi32>
  %size = stablehlo.constant dense<16> : tensor<8xi32>
  %six = stablehlo.constant dense<6> : tensor<8xi32>
  %sign = stablehlo.sign %x : tensor<8xi32>
  %0 = stablehlo.divide %x, %size : tensor<8xi32>
  %1 = stablehlo.sign %size : tensor<8xi32>
  %2 = stablehlo.compare NE, %sign, %1, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %3 = stablehlo.remainder %x, %size : tensor<8xi32>
  %4 = stablehlo.compare NE, %3, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %5 = stablehlo.and %2, %4 : tensor<8xi1>
  %6 = stablehlo.subtract %0, %one : tensor<8xi32>
  %7 = stablehlo.select %5, %6, %0 : tensor<8xi1>, tensor<8xi32>
  %10 = stablehlo.divide %x, %six : tensor<8xi32>
  %11 = stablehlo.sign %six : tensor<8xi32>
  %12 = stablehlo.compare NE, %sign, %11, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %13 = stablehlo.remainder %x, %six : tensor<8xi32>
  %14 = stablehlo.compare NE, %13, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %15 = stablehlo.and %12, %14 : tensor<8xi1>
  %16 = stablehlo.subtract %10, %one : tensor<8xi32>
  %17 = stablehlo.select %15, %16, %10 : tensor<8xi1>, tensor<8xi32>
  return %7, %17 : tensor<8xi32>, tensor<8xi32>
}

// -----

// Both of a number that is not negative: the remainder of iota; the quotient of it by a number that is not known.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
// CHECK:         %[[I:.*]] = stablehlo.iota dim = 0 : tensor<8xi32>
// CHECK:         %[[R:.*]] = stablehlo.remainder %[[I]]
// CHECK:         %[[D:.*]] = stablehlo.clamp
// CHECK:         %[[Q:.*]] = stablehlo.divide %[[I]], %[[D]] : tensor<8xi32>
// CHECK:         return %[[R]], %[[Q]]
func.func @main(%x: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<8xi32>
  %one = stablehlo.constant dense<1> : tensor<8xi32>
  %three = stablehlo.constant dense<3> : tensor<8xi32>
  %i = stablehlo.iota dim = 0 : tensor<8xi32>
  %0 = stablehlo.remainder %i, %three : tensor<8xi32>
  %1 = stablehlo.compare LT, %0, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %2 = stablehlo.add %0, %three : tensor<8xi32>
  %3 = stablehlo.select %1, %2, %0 : tensor<8xi1>, tensor<8xi32>
  %d = stablehlo.clamp %one, %x, %three : tensor<8xi32>
  %10 = stablehlo.divide %i, %d : tensor<8xi32>
  %sign = stablehlo.sign %i : tensor<8xi32>
  %11 = stablehlo.sign %d : tensor<8xi32>
  %12 = stablehlo.compare NE, %sign, %11, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %13 = stablehlo.remainder %i, %d : tensor<8xi32>
  %14 = stablehlo.compare NE, %13, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %15 = stablehlo.and %12, %14 : tensor<8xi1>
  %16 = stablehlo.subtract %10, %one : tensor<8xi32>
  %17 = stablehlo.select %15, %16, %10 : tensor<8xi1>, tensor<8xi32>
  return %3, %17 : tensor<8xi32>, tensor<8xi32>
}

// -----

// A counter of a loop, which is below its bound; a sum of bytes may wrap around, and is asked.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while
// CHECK:         do {
// CHECK-NOT:       stablehlo.compare
// CHECK:           stablehlo.return
// CHECK:         stablehlo.add {{.*}} : tensor<i8>
// CHECK:         stablehlo.compare LT
// CHECK:         stablehlo.select
func.func @main(%x: tensor<i32>, %b: tensor<i8>) -> (tensor<i32>, tensor<i8>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<i32>
    cond {
      %end = stablehlo.constant dense<9> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %none = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %size = stablehlo.constant dense<10> : tensor<i32>
      %low = stablehlo.compare LT, %i, %none, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %far = stablehlo.add %i, %size : tensor<i32>
      %at = stablehlo.select %low, %far, %i : tensor<i1>, tensor<i32>
      %sum = stablehlo.add %s, %at : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<i32>
    }
  %small = stablehlo.constant dense<100> : tensor<i8>
  %none = stablehlo.constant dense<0> : tensor<i8>
  %positive = stablehlo.maximum %b, %none : tensor<i8>
  %1 = stablehlo.add %positive, %small : tensor<i8>
  %2 = stablehlo.compare LT, %1, %none, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
  %3 = stablehlo.select %2, %none, %1 : tensor<i1>, tensor<i8>
  return %0#1, %3 : tensor<i32>, tensor<i8>
}

// -----

// A mask of a gather's bounds is true for the places of a sort.

// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.*]]:2 = "stablehlo.sort"
// CHECK:         %[[G:.*]] = "stablehlo.gather"
// CHECK-NOT:     stablehlo.select
// CHECK:         return %[[G]]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %i = stablehlo.iota dim = 0 : tensor<8xi32>
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %p: tensor<i32>, %q: tensor<i32>):
    %lower = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %lower : tensor<i1>
  }) : (tensor<8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  %at = stablehlo.reshape %0#1 : (tensor<8xi32>) -> tensor<8x1xi32>
  %zero = stablehlo.constant dense<0> : tensor<8x1xi32>
  %last = stablehlo.constant dense<7> : tensor<8x1xi32>
  %1 = stablehlo.compare GE, %at, %zero, SIGNED : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x1xi1>
  %2 = stablehlo.compare LE, %at, %last, SIGNED : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x1xi1>
  %3 = stablehlo.and %1, %2 : tensor<8x1xi1>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %4 = stablehlo.reduce(%3 init: %true) applies stablehlo.and across dimensions = [1]
    : (tensor<8x1xi1>, tensor<i1>) -> tensor<8xi1>
  %5 = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
    : (tensor<8xf32>, tensor<8x1xi32>) -> tensor<8xf32>
  %nan = stablehlo.constant dense<0x7FC00000> : tensor<8xf32>
  %6 = stablehlo.select %4, %5, %nan : tensor<8xi1>, tensor<8xf32>
  return %6 : tensor<8xf32>
}
