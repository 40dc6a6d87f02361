// RUN: xgpu-opt %s -p mark-held-rows --split-input-file | FileCheck %s

// Rows that are read again beside their reductions.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.reduce{{.*}}maximum{{.*}}xgpu.held
// CHECK:         stablehlo.reduce{{.*}}add{{.*}}xgpu.held
func.func @main(%x: tensor<1024x4xf32>) -> tensor<1024x4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<1024x4xf32>, tensor<f32>) -> tensor<1024xf32>
  %column = stablehlo.reshape %max : (tensor<1024xf32>) -> tensor<1024x1xf32>
  %wide = stablehlo.broadcast_in_dim %column, dims = [0, 1] : (tensor<1024x1xf32>) -> tensor<1024x4xf32>
  %shifted = stablehlo.subtract %x, %wide : tensor<1024x4xf32>
  %e = stablehlo.exponential %shifted : tensor<1024x4xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x4xf32>, tensor<f32>) -> tensor<1024xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<1024xf32>) -> tensor<1024x4xf32>
  %r = stablehlo.divide %e, %sums : tensor<1024x4xf32>
  return %r : tensor<1024x4xf32>
}

// -----

// The rows are reshaped and stored.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.reduce{{.*}}xgpu.held
func.func @main(%x: tensor<1024x4xf32>) -> tensor<32x32x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x4xf32>, tensor<f32>) -> tensor<1024xf32>
  %square = stablehlo.reshape %sum : (tensor<1024xf32>) -> tensor<32x32xf32>
  %sums = stablehlo.broadcast_in_dim %square, dims = [0, 1] : (tensor<32x32xf32>) -> tensor<32x32x4xf32>
  %y = stablehlo.reshape %x : (tensor<1024x4xf32>) -> tensor<32x32x4xf32>
  %r = stablehlo.divide %y, %sums : tensor<32x32x4xf32>
  return %r : tensor<32x32x4xf32>
}

// -----

// Columns, of which a reduction reads what another one is a part of.

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: stablehlo.reduce{{.*}}xgpu.held
func.func @main(%x: tensor<8x4x512xf32>) -> tensor<8x512xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4x512xf32>, tensor<f32>) -> tensor<8x512xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 2] : (tensor<8x512xf32>) -> tensor<8x4x512xf32>
  %d = stablehlo.subtract %x, %sums : tensor<8x4x512xf32>
  %s = stablehlo.multiply %d, %d : tensor<8x4x512xf32>
  %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4x512xf32>, tensor<f32>) -> tensor<8x512xf32>
  return %r : tensor<8x512xf32>
}

// -----

// Of rows a thread has all of, a reduction alone is computed where it is read, and so is that of two elements.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     xgpu.held
func.func @main(%x: tensor<1024x4xf32>, %y: tensor<1024x2xf32>) -> (tensor<1024xf32>, tensor<1024x2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x4xf32>, tensor<f32>) -> tensor<1024xf32>
  %two = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x2xf32>, tensor<f32>) -> tensor<1024xf32>
  %sums = stablehlo.broadcast_in_dim %two, dims = [0] : (tensor<1024xf32>) -> tensor<1024x2xf32>
  %r = stablehlo.subtract %y, %sums : tensor<1024x2xf32>
  return %sum, %r : tensor<1024xf32>, tensor<1024x2xf32>
}

// -----

// Rows longer than what a thread loads at once; of two elements that take long to compute.

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: stablehlo.reduce{{.*}}xgpu.held
func.func @main(%x: tensor<1024x8xf32>, %y: tensor<1024x2xf32>) -> (tensor<1024xf32>, tensor<1024x2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x8xf32>, tensor<f32>) -> tensor<1024xf32>
  %sine = stablehlo.sine %y : tensor<1024x2xf32>
  %two = stablehlo.reduce(%sine init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x2xf32>, tensor<f32>) -> tensor<1024xf32>
  %sums = stablehlo.broadcast_in_dim %two, dims = [0] : (tensor<1024xf32>) -> tensor<1024x2xf32>
  %r = stablehlo.subtract %sine, %sums : tensor<1024x2xf32>
  return %sum, %r : tensor<1024xf32>, tensor<1024x2xf32>
}

// -----

// What follows reads other rows, or a part of its own: a loop that computes the sums again is one kernel.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     xgpu.held
func.func @main(%x: tensor<1024x4xf32>, %y: tensor<8x4x512xf32>) -> (tensor<1024x4xf32>, tensor<8x1x512xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x4xf32>, tensor<f32>) -> tensor<1024xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<1024xf32>) -> tensor<1024x4xf32>
  %d = stablehlo.subtract %x, %sums : tensor<1024x4xf32>
  %r = stablehlo.reverse %d, dims = [0] : tensor<1024x4xf32>
  %column = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4x512xf32>, tensor<f32>) -> tensor<8x512xf32>
  %columns = stablehlo.broadcast_in_dim %column, dims = [0, 2] : (tensor<8x512xf32>) -> tensor<8x4x512xf32>
  %e = stablehlo.subtract %y, %columns : tensor<8x4x512xf32>
  %s = stablehlo.slice %e [0:8, 1:2, 0:512] : (tensor<8x4x512xf32>) -> tensor<8x1x512xf32>
  return %r, %s : tensor<1024x4xf32>, tensor<8x1x512xf32>
}

// -----

// A broadcast along another dimension pairs elements with the sums of other rows; the order of elements counts; numbers
// of less than a byte share memory.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     xgpu.held
func.func @main(%x: tensor<4x4xf32>, %y: tensor<64x8xf32>, %z: tensor<64x8xi4>) -> (tensor<4x4xf32>, tensor<64xf32>, tensor<64xi4>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i4>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>
  %d = stablehlo.subtract %x, %sums : tensor<4x4xf32>
  %last = stablehlo.reduce(%y init: %zero) across dimensions = [1] : (tensor<64x8xf32>, tensor<f32>) -> tensor<64xf32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      stablehlo.return %b : tensor<f32>
    }
  %small = stablehlo.reduce(%z init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x8xi4>, tensor<i4>) -> tensor<64xi4>
  return %d, %last, %small : tensor<4x4xf32>, tensor<64xf32>, tensor<64xi4>
}

// -----

// Sums that are gathered are those of other rows; a loop may compute what it starts from.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     xgpu.held
func.func @main(%w: tensor<100x4xf32>, %at: tensor<100x4x1xi32>, %x: tensor<64x4xf32>) -> (tensor<100x4xf32>, tensor<64x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<100x4xf32>, tensor<f32>) -> tensor<100xf32>
  %sums = "stablehlo.gather"(%sum, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<100xf32>, tensor<100x4x1xi32>) -> tensor<100x4xf32>
  %r = stablehlo.divide %w, %sums : tensor<100x4xf32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %total = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x4xf32>, tensor<f32>) -> tensor<64xf32>
  %totals = stablehlo.broadcast_in_dim %total, dims = [0] : (tensor<64xf32>) -> tensor<64x4xf32>
  %start = stablehlo.divide %x, %totals : tensor<64x4xf32>
  %l:2 = stablehlo.while(%k = %i, %y = %start) : tensor<i32>, tensor<64x4xf32>
  cond {
    %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %k, %one : tensor<i32>
    %z = stablehlo.sine %y : tensor<64x4xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<64x4xf32>
  }
  return %r, %l#1 : tensor<100x4xf32>, tensor<64x4xf32>
}

// -----

// Distances of all pairs: caches deliver the rows, of which each is computed where its sum is.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     xgpu.held
func.func @main(%x: tensor<1024x8xui32>, %y: tensor<4096x8xui32>) -> tensor<1024x4096xui32> {
  %zero = stablehlo.constant dense<0> : tensor<ui32>
  %a = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<1024x8xui32>) -> tensor<1024x4096x8xui32>
  %b = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<4096x8xui32>) -> tensor<1024x4096x8xui32>
  %d = stablehlo.xor %a, %b : tensor<1024x4096x8xui32>
  %c = stablehlo.popcnt %d : tensor<1024x4096x8xui32>
  %s = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<1024x4096x8xui32>, tensor<ui32>) -> tensor<1024x4096xui32>
  return %s : tensor<1024x4096xui32>
}
