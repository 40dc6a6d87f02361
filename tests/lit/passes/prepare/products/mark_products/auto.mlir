// RUN: xgpu-opt %s -p 'mark-products{products=auto}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p mark-products --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'mark-products{products=library}' --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: xgpu-opt %s -p 'mark-products{target=sm_90}' --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: xgpu-opt %s -p 'mark-products{target=sm_80}' --split-input-file | FileCheck %s --check-prefix=NONE

// NONE-NOT: xgpu.product
// NONE-NOT: xgpu.expected

// Of few tiles a library splits the sums; of many it does not. Other types were not timed.

// CHECK-LABEL: func.func @main(%arg0: tensor<128x4096xbf16>
// CHECK: stablehlo.dot_general %arg0, %arg1{{.*}} {xgpu.expected = "library {{[0-9.]+}} us, kernel {{[0-9.]+}} us", xgpu.product = "wgmma"}
// CHECK: stablehlo.dot_general %arg1, %arg1{{.*}} {xgpu.expected = "library {{[0-9.]+}} us, kernel {{[0-9.]+}} us"} :
// CHECK: stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0] :
func.func @main(%x: tensor<128x4096xbf16>, %w: tensor<4096x4096xbf16>, %y: tensor<128x4096xf32>, %v: tensor<4096x4096xf32>) -> (tensor<128x4096xbf16>, tensor<4096x4096xbf16>, tensor<128x4096xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<128x4096xbf16>
  %1 = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %2 = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : (tensor<128x4096xf32>, tensor<4096x4096xf32>) -> tensor<128x4096xf32>
  return %0, %1, %2 : tensor<128x4096xbf16>, tensor<4096x4096xbf16>, tensor<128x4096xf32>
}

// -----

// What follows would be a kernel of its own. With a bias it is none: XLA has that in its products.

// CHECK-LABEL: func.func @main(%arg0: tensor<2048x2048xf16>
// CHECK: stablehlo.dot_general %arg0, %arg1{{.*}} xgpu.product = "wgmma"
// CHECK: stablehlo.dot_general %arg0, %arg3
// CHECK-NOT: xgpu.product
// CHECK: return
func.func @main(%x: tensor<2048x2048xf16>, %w: tensor<2048x2048xf16>, %b: tensor<2048xf16>, %v: tensor<2048x2048xf16>) -> (tensor<2048x2048xf16>, tensor<2048x2048xf16>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x2048xf16>, tensor<2048x2048xf16>) -> tensor<2048x2048xf16>
  %1 = stablehlo.multiply %0, %0 : tensor<2048x2048xf16>
  %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<2048x2048xf16>, tensor<2048x2048xf16>) -> tensor<2048x2048xf16>
  %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2048xf16>) -> tensor<2048x2048xf16>
  %4 = stablehlo.add %2, %3 : tensor<2048x2048xf16>
  return %1, %4 : tensor<2048x2048xf16>, tensor<2048x2048xf16>
}

// -----

// Operands that a kernel would read copies of: a transpose of other than rows and columns, a slice, a constant.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x4096x64xbf16>
// CHECK: xgpu.expected = "no gain by a kernel: a kernel's operand, a result of stablehlo.transpose, would be copied"
// CHECK: xgpu.expected = "no gain by a kernel: a kernel's operand, a result of stablehlo.dynamic_slice, would be copied"
// CHECK: xgpu.expected = "no gain by a kernel: a kernel's operand, a result of stablehlo.broadcast_in_dim, would be copied"
// CHECK-NOT: xgpu.product
func.func @main(%x: tensor<2x4096x64xbf16>, %w: tensor<4096x4096xbf16>, %s: tensor<3x4096x4096xbf16>, %i: tensor<i32>, %y: tensor<128x4096xbf16>, %b: tensor<4096xbf16>) -> (tensor<64x2x4096xbf16>, tensor<128x1x4096xbf16>, tensor<128x4096xbf16>) {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x4096x64xbf16>) -> tensor<64x2x4096xbf16>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0] : (tensor<64x2x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<64x2x4096xbf16>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %2 = stablehlo.dynamic_slice %s, %i, %c, %c, sizes = [1, 4096, 4096] : (tensor<3x4096x4096xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4096x4096xbf16>
  %3 = stablehlo.dot_general %y, %2, contracting_dims = [1] x [1] : (tensor<128x4096xbf16>, tensor<1x4096x4096xbf16>) -> tensor<128x1x4096xbf16>
  %4 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<4096xbf16>) -> tensor<4096x4096xbf16>
  %5 = stablehlo.dot_general %y, %4, contracting_dims = [1] x [0] : (tensor<128x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<128x4096xbf16>
  return %1, %3, %5 : tensor<64x2x4096xbf16>, tensor<128x1x4096xbf16>, tensor<128x4096xbf16>
}

// -----

// What is computed from a product, and stored with wider elements, several times, or read through a transpose.

// CHECK-LABEL: func.func @main(%arg0: tensor<128x4096xbf16>
// CHECK: xgpu.expected = "no gain by a kernel: a value computed from it is stored with wider elements"
// CHECK: xgpu.expected = "no gain by a kernel: kernels would store several arrays that are computed from it"
// CHECK: xgpu.expected = "no gain by a kernel: its reader reads it through a transpose or a broadcast"
// CHECK-NOT: xgpu.product
func.func @main(%x: tensor<128x4096xbf16>, %w: tensor<4096x4096xbf16>, %v: tensor<4096x4096xbf16>, %u: tensor<4096x4096xbf16>) -> (tensor<128x4096xf32>, tensor<128x4096xbf16>, tensor<128x4096xbf16>, tensor<4096x128xbf16>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<128x4096xbf16>
  %1 = stablehlo.convert %0 : (tensor<128x4096xbf16>) -> tensor<128x4096xf32>
  %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<128x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<128x4096xbf16>
  %3 = stablehlo.sine %2 : tensor<128x4096xbf16>
  %4 = stablehlo.cosine %2 : tensor<128x4096xbf16>
  %5 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<128x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<128x4096xbf16>
  %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<128x4096xbf16>) -> tensor<4096x128xbf16>
  return %1, %3, %4, %6 : tensor<128x4096xf32>, tensor<128x4096xbf16>, tensor<128x4096xbf16>, tensor<4096x128xbf16>
}

// -----

// A gated unit: one kernel of both. Where it is left, both say what was expected of it.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x4096xbf16>
// CHECK-COUNT-2: {xgpu.expected = "[[TIMES:library [0-9.]+ us, kernel [0-9.]+ us]]", xgpu.joined = 0 : i64, xgpu.product = "wgmma"}
// CHECK: return
func.func @main(%x: tensor<512x4096xbf16>, %w: tensor<4096x4096xbf16>, %v: tensor<4096x4096xbf16>) -> tensor<512x4096xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<512x4096xbf16>
  %1 = stablehlo.logistic %0 : tensor<512x4096xbf16>
  %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<512x4096xbf16>
  %3 = stablehlo.multiply %1, %2 : tensor<512x4096xbf16>
  return %3 : tensor<512x4096xbf16>
}

// -----

// CHECK-LABEL: func.func @main(%arg0: tensor<2048x2048xbf16>
// CHECK: xgpu.expected = "[[TIMES:library [0-9.]+ us, kernel [0-9.]+ us]]"
// CHECK: xgpu.expected = "[[TIMES]]"
// CHECK-NOT: xgpu.product
func.func @main(%x: tensor<2048x2048xbf16>, %w: tensor<2048x5504xbf16>, %v: tensor<2048x5504xbf16>) -> tensor<2048x5504xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x5504xbf16>) -> tensor<2048x5504xbf16>
  %1 = stablehlo.logistic %0 : tensor<2048x5504xbf16>
  %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x5504xbf16>) -> tensor<2048x5504xbf16>
  %3 = stablehlo.multiply %1, %2 : tensor<2048x5504xbf16>
  return %3 : tensor<2048x5504xbf16>
}

// -----

// XLA may compute what reads two products with either of them.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x4096xbf16>
// CHECK-COUNT-2: xgpu.expected = "no gain by a kernel: its epilogue reads a result of stablehlo.dot_general, and may be computed with that"
// CHECK-NOT: xgpu.product
func.func @main(%x: tensor<64x4096xbf16>, %w: tensor<4096x4096xbf16>, %y: tensor<64x4096xbf16>, %v: tensor<4096x4096xbf16>) -> tensor<64x4096xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<64x4096xbf16>
  %1 = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : (tensor<64x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<64x4096xbf16>
  %2 = stablehlo.add %0, %1 : tensor<64x4096xbf16>
  return %2 : tensor<64x4096xbf16>
}
