// RUN: xgpu-opt %s -p 'turn-masks{least-elements=16}' --split-input-file | FileCheck %s

// Where a low number is chosen, everything else is chosen where that is not hidden: the comparisons are turned.

// CHECK-LABEL: func.func @main
// CHECK:         %[[LE:.*]] = stablehlo.compare LE, %[[KEY:.*]], %[[ROW:.*]] : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
// CHECK:         %[[NE:.*]] = stablehlo.compare NE, %[[KEY]], %[[ROW]] : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
// CHECK:         %[[AND:.*]] = stablehlo.and %[[LE]], %[[NE]] : tensor<8x8xi1>
// CHECK:         %[[SEEN:.*]] = stablehlo.broadcast_in_dim %[[AND]], dims = [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
// CHECK:         stablehlo.select %[[SEEN]], %arg0, %{{.*}} : tensor<2x8x8xi1>, tensor<2x8x8xf32>
func.func @main(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %row = stablehlo.iota dim = 0 : tensor<8x8xi32>
  %key = stablehlo.iota dim = 1 : tensor<8x8xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<2x8x8xf32>
  %after = stablehlo.compare GT, %key, %row : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
  %same = stablehlo.compare EQ, %key, %row : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
  %hidden = stablehlo.or %after, %same : tensor<8x8xi1>
  %all = stablehlo.broadcast_in_dim %hidden, dims = [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %0 = stablehlo.select %all, %low, %x : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}

// -----

// An order of floats has no opposite, as one may be no number. Numbers that hide nothing are left where they are.

// CHECK-LABEL: func.func @main
// CHECK:         %[[C:.*]] = stablehlo.compare GT
// CHECK:         %[[N:.*]] = stablehlo.not %[[C]]
// CHECK:         %[[S:.*]] = stablehlo.select %[[N]], %arg0, %{{.*}}
// CHECK:         stablehlo.select %[[C]], %{{.*}}, %[[S]]
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %low = stablehlo.constant dense<-1.0e+09> : tensor<8x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %hidden = stablehlo.compare GT, %x, %one : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>
  %0 = stablehlo.select %hidden, %low, %x : tensor<8x8xi1>, tensor<8x8xf32>
  %1 = stablehlo.select %hidden, %one, %0 : tensor<8x8xi1>, tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// A constant that holds from one diagonal to another is a comparison of indices; one that does not is a constant.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[ROW:.*]] = stablehlo.iota dim = 0 : tensor<4x4xi32>
// CHECK-DAG:     %[[KEY:.*]] = stablehlo.iota dim = 1 : tensor<4x4xi32>
// CHECK:         %[[C:.*]] = stablehlo.compare LE, %[[KEY]], %{{.*}} : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
// CHECK:         %[[OTHER:.*]] = stablehlo.constant dense<{{.*}} : tensor<4x4xi1>
// CHECK:         stablehlo.and %[[C]], %[[OTHER]] : tensor<4x4xi1>
func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %lower = stablehlo.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %other = stablehlo.constant dense<[[true, false, true, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %0 = stablehlo.and %lower, %other : tensor<4x4xi1>
  %1 = stablehlo.select %0, %x, %y : tensor<4x4xi1>, tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// A condition that was made a number is the condition again.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.select %arg1, %arg0, %{{.*}} : tensor<8x8xi1>, tensor<8x8xf32>
func.func @main(%x: tensor<8x8xf32>, %seen: tensor<8x8xi1>) -> tensor<8x8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<8x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %number = stablehlo.convert %seen : (tensor<8x8xi1>) -> tensor<8x8xf32>
  %hidden = stablehlo.compare EQ, %number, %zero : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>
  %0 = stablehlo.select %hidden, %low, %x : tensor<8x8xi1>, tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Other choices by the same condition follow, wherever its elements were moved; those that are in order already do not.

// CHECK-LABEL: func.func @main
// CHECK:         %[[SEEN:.*]] = stablehlo.compare LE, %[[KEY:.*]], %[[ROW:.*]] : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
// CHECK:         %[[ALL:.*]] = stablehlo.broadcast_in_dim %[[SEEN]], dims = [1, 2]
// CHECK:         %[[S:.*]] = stablehlo.select %[[ALL]], %arg0, %{{.*}}
// CHECK:         stablehlo.select %{{.*}}, %[[S]], %{{.*}}
// CHECK:         stablehlo.select %{{.*}}, %arg0, %[[ZERO:.*]] : tensor<2x8x8xi1>, tensor<2x8x8xf32>
func.func @main(%x: tensor<2x8x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8x8xf32>) {
  %row = stablehlo.iota dim = 0 : tensor<8x8xi32>
  %key = stablehlo.iota dim = 1 : tensor<8x8xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<2x8x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<2x8x8xf32>
  %hidden = stablehlo.compare GT, %key, %row : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
  %all = stablehlo.broadcast_in_dim %hidden, dims = [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %again = stablehlo.broadcast_in_dim %hidden, dims = [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %0 = stablehlo.select %all, %low, %x : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  %1 = stablehlo.select %again, %0, %low : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  %2 = stablehlo.select %again, %zero, %x : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  return %1, %2 : tensor<2x8x8xf32>, tensor<2x8x8xf32>
}

// -----

// Only conditions are turned, not bits of integers.

// CHECK-LABEL: func.func @main
// CHECK:         %[[AND:.*]] = stablehlo.and %arg0, %{{.*}} : tensor<8x8xi32>
// CHECK:         stablehlo.not %[[AND]] : tensor<8x8xi32>
func.func @main(%x: tensor<8x8xi32>) -> tensor<8x8xi32> {
  %bits = stablehlo.constant dense<5> : tensor<8x8xi32>
  %0 = stablehlo.and %x, %bits : tensor<8x8xi32>
  %1 = stablehlo.not %0 : tensor<8x8xi32>
  return %1 : tensor<8x8xi32>
}

// -----

// A number that a condition is made, and is multiplied by or divided by another one, is that or zero; rounded as before.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[C:.*]] = stablehlo.constant dense<1.109380e+00> : tensor<8xbf16>
// CHECK:         stablehlo.select %arg0, %[[C]], %{{.*}} : tensor<8xi1>, tensor<8xbf16>
// CHECK:         %[[TWO:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<8xbf16>
// CHECK:         stablehlo.select %arg0, %[[TWO]], %{{.*}} : tensor<8xi1>, tensor<8xbf16>
// CHECK:         stablehlo.multiply %{{.*}}, %{{.*}} : tensor<8xbf16>
func.func @main(%keep: tensor<8xi1>) -> (tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>) {
  %share = stablehlo.constant dense<0.8984375> : tensor<8xbf16>
  %two = stablehlo.constant dense<2.0> : tensor<8xbf16>
  %less = stablehlo.constant dense<-2.0> : tensor<8xbf16>
  %number = stablehlo.convert %keep : (tensor<8xi1>) -> tensor<8xbf16>
  %0 = stablehlo.divide %number, %share : tensor<8xbf16>
  %1 = stablehlo.multiply %two, %number : tensor<8xbf16>
  %2 = stablehlo.multiply %less, %number : tensor<8xbf16>
  return %0, %1, %2 : tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>
}
