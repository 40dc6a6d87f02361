// RUN: xgpu-opt %s -p separate-products --split-input-file | FileCheck %s

// XLA would copy 42 MB of weights to multiply them at once by 16 rows. Small ones it may merge.

// CHECK-LABEL: func.func @main(%arg0: tensor<16x4096xbf16>
// CHECK-DAG:     %[[X:.*]] = stablehlo.optimization_barrier %arg0 : tensor<16x4096xbf16>
// CHECK-DAG:     stablehlo.dot_general %[[X]], %arg1,
// CHECK-DAG:     stablehlo.dot_general %arg0, %arg2,
// CHECK-DAG:     stablehlo.dot_general %arg0, %arg3,
// CHECK-NOT:     stablehlo.optimization_barrier
// CHECK:         return
func.func @main(%x: tensor<16x4096xbf16>, %u: tensor<4096x4096xbf16>, %v: tensor<4096x16xbf16>, %w: tensor<4096x8xbf16>) -> (tensor<16x4096xbf16>, tensor<16x16xbf16>, tensor<16x8xbf16>) {
  %0 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
  %1 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x16xbf16>) -> tensor<16x16xbf16>
  %2 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x8xbf16>) -> tensor<16x8xbf16>
  return %0, %1, %2 : tensor<16x4096xbf16>, tensor<16x16xbf16>, tensor<16x8xbf16>
}

// -----

// The barrier is behind views, which XLA folds into products. Results may have other marks.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096x16xbf16>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.transpose %arg0, dims = [1, 0]
// CHECK-NEXT:    stablehlo.dot_general %[[A]], %arg1,
// CHECK-NEXT:    %[[X:.*]] = stablehlo.optimization_barrier %arg0 : tensor<4096x16xbf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.transpose %[[X]], dims = [1, 0]
// CHECK-NEXT:    stablehlo.dot_general %[[B]], %arg2,
func.func @main(%x: tensor<4096x16xbf16>, %v: tensor<4096x4096xbf16>, %w: tensor<4096x1024xbf16>) -> (tensor<16x4096xbf16>, tensor<16x1024xbf16>) {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4096x16xbf16>) -> tensor<16x4096xbf16>
  %0 = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0] {xgpu.expected = "one"} : (tensor<16x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
  %1 = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] {xgpu.expected = "another"} : (tensor<16x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<16x1024xbf16>
  return %0, %1 : tensor<16x4096xbf16>, tensor<16x1024xbf16>
}

// -----

// Rows of two arrays by one matrix: what is copied are the rows, which are few. A product that a kernel computes, and
// one of another type, XLA does not merge.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     stablehlo.optimization_barrier
// CHECK:         return
func.func @main(%x: tensor<16x4096xbf16>, %y: tensor<8x4096xbf16>, %v: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>, %z: tensor<4096x4096xbf16>) -> (tensor<16x4096xbf16>, tensor<8x4096xbf16>, tensor<16x4096xbf16>, tensor<8x4096xf32>) {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
  %1 = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : (tensor<8x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8x4096xbf16>
  %2 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : (tensor<16x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
  %3 = stablehlo.dot_general %y, %z, contracting_dims = [1] x [0] : (tensor<8x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8x4096xf32>
  return %0, %1, %2, %3 : tensor<16x4096xbf16>, tensor<8x4096xbf16>, tensor<16x4096xbf16>, tensor<8x4096xf32>
}

// -----

// Weights of heads, which XLA takes for those of rows.

// CHECK-LABEL: func.func @main(
// CHECK:         stablehlo.dot_general %arg0, %arg1
// CHECK:         %[[X:.*]] = stablehlo.optimization_barrier %arg0
// CHECK:         stablehlo.dot_general %[[X]], %arg2
func.func @main(%x: tensor<16x4096xbf16>, %v: tensor<4096x32x128xbf16>, %w: tensor<4096x8x128xbf16>) -> (tensor<16x32x128xbf16>, tensor<16x8x128xbf16>) {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x32x128xbf16>) -> tensor<16x32x128xbf16>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x8x128xbf16>) -> tensor<16x8x128xbf16>
  return %0, %1 : tensor<16x32x128xbf16>, tensor<16x8x128xbf16>
}

// -----

// XLA would turn one of two operands that lie differently, and copy both results for the kernel that reads them. It may
// where no kernel reads them.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x64x32xf32>
// CHECK:         %[[P:.*]] = stablehlo.dot_general %arg0, %arg2,
// CHECK:         %[[X:.*]] = stablehlo.optimization_barrier %arg2 : tensor<2x64x16xf32>
// CHECK-NEXT:    stablehlo.dot_general %arg1, %[[X]],
// CHECK:         stablehlo.dot_general %arg0, %arg3,
// CHECK-NOT:     stablehlo.optimization_barrier
// CHECK:         return
func.func @main(%v: tensor<2x64x32xf32>, %w: tensor<2x32x64xf32>, %x: tensor<2x64x16xf32>, %y: tensor<2x64x16xf32>) -> (tensor<2x32x16xf32>, tensor<2x32x16xf32>, tensor<2x32x16xf32>) {
  %0 = stablehlo.dot_general %v, %x, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x64x32xf32>, tensor<2x64x16xf32>) -> tensor<2x32x16xf32>
  %1 = stablehlo.dot_general %w, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x32x64xf32>, tensor<2x64x16xf32>) -> tensor<2x32x16xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x32x16xf32>
  %3 = stablehlo.dot_general %v, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x64x32xf32>, tensor<2x64x16xf32>) -> tensor<2x32x16xf32>
  %4 = stablehlo.dot_general %w, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x32x64xf32>, tensor<2x64x16xf32>) -> tensor<2x32x16xf32>
  return %2, %3, %4 : tensor<2x32x16xf32>, tensor<2x32x16xf32>, tensor<2x32x16xf32>
}
