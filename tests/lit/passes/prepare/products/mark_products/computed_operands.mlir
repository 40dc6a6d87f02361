// RUN: xgpu-opt %s -p mark-products --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'mark-products{products=kernels}' --split-input-file | FileCheck %s --check-prefix=KERNELS
// RUN: xgpu-opt %s -p 'mark-products{products=library}' --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: xgpu-opt %s -p 'mark-products{target=sm_90}' --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: xgpu-opt %s -p 'mark-products{choices=open}' --split-input-file | FileCheck %s --check-prefix=OPEN

// NONE-NOT: xgpu.p

// A kernel of the product dequantises the weights. Products of one array that do are kernels of their own.
// CHECK-LABEL: func.func @main(%arg0: tensor<64x4096xbf16>
// CHECK-COUNT-2: {xgpu.expected = "library {{[0-9.]+}} us, kernel {{[0-9.]+}} us", xgpu.product = "wgmma", xgpu.prologue = "right"}
// KERNELS-COUNT-2: {xgpu.product = "wgmma", xgpu.prologue = "right"}
func.func @main(%x: tensor<64x4096xbf16>, %q: tensor<4096x4096xi8>, %p: tensor<4096x4096xi8>, %s: tensor<4096xf32>) -> tensor<64x4096xbf16> {
  %scales = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<4096xf32>) -> tensor<4096x4096xf32>
  %0 = stablehlo.convert %q : (tensor<4096x4096xi8>) -> tensor<4096x4096xf32>
  %1 = stablehlo.multiply %0, %scales : tensor<4096x4096xf32>
  %2 = stablehlo.convert %1 : (tensor<4096x4096xf32>) -> tensor<4096x4096xbf16>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0] : (tensor<64x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<64x4096xbf16>
  %4 = stablehlo.convert %p : (tensor<4096x4096xi8>) -> tensor<4096x4096xf32>
  %5 = stablehlo.multiply %4, %scales : tensor<4096x4096xf32>
  %6 = stablehlo.convert %5 : (tensor<4096x4096xf32>) -> tensor<4096x4096xbf16>
  %7 = stablehlo.dot_general %x, %6, contracting_dims = [1] x [0] : (tensor<64x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<64x4096xbf16>
  %8 = stablehlo.multiply %3, %7 : tensor<64x4096xbf16>
  return %8 : tensor<64x4096xbf16>
}

// -----

// The left operand may be the one. Of many rows the weights are stored.
// CHECK-LABEL: func.func @main(%arg0: tensor<4096x4096xui8>
// CHECK: {xgpu.expected = "library {{[0-9.]+}} us, kernel {{[0-9.]+}} us", xgpu.product = "wgmma", xgpu.prologue = "left"}
// CHECK: stablehlo.dot_general {{.*}}tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16>
// CHECK-NOT: xgpu.prologue
// CHECK: return
// OPEN: {xgpu.candidate = 0 : i64, xgpu.product = "wgmma", xgpu.prologue = "left"}
func.func @main(%q: tensor<4096x4096xui8>, %x: tensor<4096x32xbf16>, %s: tensor<4096xf32>, %p: tensor<4096x4096xui8>, %y: tensor<4096x8192xbf16>) -> (tensor<4096x32xbf16>, tensor<4096x8192xbf16>) {
  %scales = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4096xf32>) -> tensor<4096x4096xf32>
  %0 = stablehlo.convert %q : (tensor<4096x4096xui8>) -> tensor<4096x4096xf32>
  %1 = stablehlo.multiply %0, %scales : tensor<4096x4096xf32>
  %2 = stablehlo.convert %1 : (tensor<4096x4096xf32>) -> tensor<4096x4096xbf16>
  %3 = stablehlo.dot_general %2, %x, contracting_dims = [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096x32xbf16>) -> tensor<4096x32xbf16>
  %4 = stablehlo.convert %p : (tensor<4096x4096xui8>) -> tensor<4096x4096xf32>
  %5 = stablehlo.multiply %4, %scales : tensor<4096x4096xf32>
  %6 = stablehlo.convert %5 : (tensor<4096x4096xf32>) -> tensor<4096x4096xbf16>
  %7 = stablehlo.dot_general %6, %y, contracting_dims = [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<4096x8192xbf16>
  return %3, %7 : tensor<4096x32xbf16>, tensor<4096x8192xbf16>
}
