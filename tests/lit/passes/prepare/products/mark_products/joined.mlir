// RUN: xgpu-opt %s -p 'mark-products{products=kernels}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'mark-products{choices=open}' --split-input-file | FileCheck %s --check-prefix=OPEN
// RUN: xgpu-opt %s -p 'mark-products{products=kernels target=sm_80}' --split-input-file | FileCheck %s --check-prefix=WARPS

// WARPS-NOT: xgpu.joined

// The two products of a gated unit, and two more of the same operand that meet elsewhere.

// CHECK-LABEL: func.func @main(%arg0: tensor<128x64xbf16>
// CHECK: stablehlo.dot_general %arg0, %arg1{{.*}} {xgpu.joined = 0 : i64, xgpu.product = "wgmma"}
// CHECK: stablehlo.dot_general %arg0, %arg2{{.*}} {xgpu.joined = 1 : i64, xgpu.product = "wgmma"}
// CHECK: stablehlo.dot_general %arg0, %arg3{{.*}} {xgpu.joined = 0 : i64, xgpu.product = "wgmma"}
// CHECK: stablehlo.dot_general %arg0, %arg4{{.*}} {xgpu.joined = 1 : i64, xgpu.product = "wgmma"}
// OPEN: stablehlo.dot_general %arg0, %arg1{{.*}} {xgpu.candidate = 0 : i64, xgpu.joined = 0 : i64, xgpu.product = "wgmma"}
// OPEN: stablehlo.dot_general %arg0, %arg2{{.*}} {xgpu.candidate = 1 : i64, xgpu.joined = 1 : i64, xgpu.product = "wgmma"}
func.func @main(%x: tensor<128x64xbf16>, %w0: tensor<64x128xbf16>, %w1: tensor<64x128xbf16>, %w2: tensor<64x128xbf16>, %w3: tensor<64x128xbf16>) -> (tensor<128x128xbf16>, tensor<128x128xbf16>) {
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %1 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %2 = stablehlo.dot_general %x, %w2, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %3 = stablehlo.dot_general %x, %w3, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %4 = stablehlo.logistic %0 : tensor<128x128xbf16>
  %5 = stablehlo.multiply %4, %2 : tensor<128x128xbf16>
  %6 = stablehlo.add %1, %3 : tensor<128x128xbf16>
  return %5, %6 : tensor<128x128xbf16>, tensor<128x128xbf16>
}

// -----

// Of five that meet, four: more columns a warp group does not multiply by at once.

// CHECK-LABEL: func.func @main(%arg0: tensor<128x64xbf16>
// CHECK-COUNT-4: {xgpu.joined = 0 : i64, xgpu.product = "wgmma"}
// CHECK-NOT: xgpu.joined
func.func @main(%x: tensor<128x64xbf16>, %w0: tensor<64x128xbf16>, %w1: tensor<64x128xbf16>, %w2: tensor<64x128xbf16>, %w3: tensor<64x128xbf16>, %w4: tensor<64x128xbf16>) -> tensor<128x128xbf16> {
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %1 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %2 = stablehlo.dot_general %x, %w2, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %3 = stablehlo.dot_general %x, %w3, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %4 = stablehlo.dot_general %x, %w4, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %5 = stablehlo.add %0, %1 : tensor<128x128xbf16>
  %6 = stablehlo.add %2, %3 : tensor<128x128xbf16>
  %7 = stablehlo.add %5, %6 : tensor<128x128xbf16>
  %8 = stablehlo.add %7, %4 : tensor<128x128xbf16>
  return %8 : tensor<128x128xbf16>
}

// -----

// Not joined: products of other left operands, of right operands of other types or read in another order, products
// that meet element by element nowhere, and those that depend on each other.

// CHECK-LABEL: func.func @main(%arg0: tensor<128x64xbf16>
// CHECK-NOT: xgpu.joined
// OPEN-LABEL: func.func @main(%arg0: tensor<128x64xbf16>, %arg1: tensor<128x64xbf16>
// OPEN-NOT: xgpu.joined
func.func @main(%x: tensor<128x64xbf16>, %y: tensor<128x64xbf16>, %w: tensor<64x128xbf16>, %v: tensor<64x128xbf16>, %u: tensor<128x64xbf16>, %t: tensor<128x128xbf16>, %s: tensor<128x128xbf16>) -> (tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xbf16>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %1 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %2 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [1] : (tensor<128x64xbf16>, tensor<128x64xbf16>) -> tensor<128x128xbf16>
  %3 = stablehlo.multiply %0, %1 : tensor<128x128xbf16>
  %4 = stablehlo.multiply %3, %2 : tensor<128x128xbf16>
  %5 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %7 = stablehlo.multiply %4, %6 : tensor<128x128xbf16>
  %8 = stablehlo.dot_general %t, %s, contracting_dims = [1] x [0] : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %9 = stablehlo.dot_general %t, %8, contracting_dims = [1] x [0] : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %10 = stablehlo.add %8, %9 : tensor<128x128xbf16>
  return %7, %10, %8, %9 : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xbf16>
}

// -----

// Neither is fast alone nor are both together: few tiles, of long sums. To be measured they are joined all the same.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x65536xbf16>
// CHECK-NOT: xgpu
// OPEN-LABEL: func.func @main(%arg0: tensor<64x65536xbf16>
// OPEN-COUNT-2: xgpu.joined = 0
func.func @main(%x: tensor<64x65536xbf16>, %w: tensor<65536x64xbf16>, %v: tensor<65536x64xbf16>) -> tensor<64x64xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x65536xbf16>, tensor<65536x64xbf16>) -> tensor<64x64xbf16>
  %1 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<64x65536xbf16>, tensor<65536x64xbf16>) -> tensor<64x64xbf16>
  %2 = stablehlo.add %0, %1 : tensor<64x64xbf16>
  return %2 : tensor<64x64xbf16>
}

// -----

// A kernel for each is faster: wider tiles are fewer waves of blocks.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096x4096xbf16>
// CHECK-COUNT-2: {xgpu.product = "wgmma"}
func.func @main(%x: tensor<4096x4096xbf16>, %w: tensor<1176x4096xbf16>, %v: tensor<1176x4096xbf16>) -> tensor<4096x1176xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<4096x4096xbf16>, tensor<1176x4096xbf16>) -> tensor<4096x1176xbf16>
  %1 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [1] : (tensor<4096x4096xbf16>, tensor<1176x4096xbf16>) -> tensor<4096x1176xbf16>
  %2 = stablehlo.add %0, %1 : tensor<4096x1176xbf16>
  return %2 : tensor<4096x1176xbf16>
}
