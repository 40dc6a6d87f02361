// RUN: xgpu compile %s --emit fusions | FileCheck %s

// The first operand, which a kernel makes, is stored as libraries read it: batch dimensions, free ones in the order that
// the result is wanted in, and the contracted one, whose elements stay together. The second is given and stays.
// CHECK-LABEL: func.func private
// CHECK: %[[ABS:.*]] = stablehlo.abs %arg0 : tensor<2x64x2x4x32xf32>
// CHECK: %[[STORED:.*]] = stablehlo.transpose %[[ABS]], dims = [0, 2, 3, 1, 4]
// CHECK: return %[[STORED]] : tensor<2x2x4x64x32xf32>

// CHECK-LABEL: func.func @main
// CHECK: %[[QUERY:.*]] = call {{.*}} -> tensor<2x2x4x64x32xf32>
// CHECK: stablehlo.dot_general %[[QUERY]], %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [3], precision = [HIGH, HIGHEST]
// CHECK-SAME: -> tensor<2x2x4x64x96xf32>
// CHECK-NOT: transpose
func.func @main(%q: tensor<2x64x2x4x32xf32>, %k: tensor<2x96x2x32xf32>) -> tensor<2x2x4x64x96xf32> {
  %0 = stablehlo.abs %q : tensor<2x64x2x4x32xf32>
  %1 = stablehlo.dot_general %k, %0, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4], precision = [HIGHEST, HIGH] : (tensor<2x96x2x32xf32>, tensor<2x64x2x4x32xf32>) -> tensor<2x2x96x64x4xf32>
  %2 = stablehlo.transpose %1, dims = [0, 1, 4, 3, 2] : (tensor<2x2x96x64x4xf32>) -> tensor<2x2x4x64x96xf32>
  %3 = stablehlo.negate %2 : tensor<2x2x4x64x96xf32>
  return %3 : tensor<2x2x4x64x96xf32>
}
