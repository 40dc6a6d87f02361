// RUN: xgpu-opt %s -p 'mark-products{products=kernels}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p mark-products --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: xgpu-opt %s -p 'mark-products{products=kernels target=sm_90}' --split-input-file | FileCheck %s --check-prefix=WARPS
// RUN: xgpu-opt %s -p 'mark-products{products=kernels target=sm_80}' --split-input-file | FileCheck %s --check-prefix=WARPS
// RUN: xgpu-opt %s -p 'mark-products{products=kernels target=sm_100a}' --split-input-file | FileCheck %s --check-prefix=WARPS
// RUN: xgpu-opt %s -p 'mark-products{products=kernels target=sm_120}' --split-input-file | FileCheck %s --check-prefix=WARPS

// NONE-NOT: xgpu.product

// Only those of bf16 and f16.

// WARPS-NOT: wgmma
// WARPS-COUNT-8: stablehlo.dot_general{{.*}} {xgpu.product = "mma"} : (tensor<{{[^>]*}}f16>
// WARPS-NOT: xgpu.product

// All four layouts of the operands.

// CHECK-LABEL: func.func @main(%arg0: tensor<40x64xbf16>
// CHECK-COUNT-4: stablehlo.dot_general{{.*}} {xgpu.product = "wgmma"}
// CHECK-NEXT:    return
func.func @main(%x: tensor<40x64xbf16>, %w: tensor<64x24xbf16>, %u: tensor<64x40xbf16>, %v: tensor<24x64xbf16>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<40x64xbf16>, tensor<64x24xbf16>) -> tensor<40x24xbf16>
  %1 = stablehlo.dot_general %u, %w, contracting_dims = [0] x [0] : (tensor<64x40xbf16>, tensor<64x24xbf16>) -> tensor<40x24xf32>
  %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [1] : (tensor<40x64xbf16>, tensor<24x64xbf16>) -> tensor<40x24xbf16>
  %3 = stablehlo.dot_general %u, %v, contracting_dims = [0] x [1] : (tensor<64x40xbf16>, tensor<24x64xbf16>) -> tensor<40x24xbf16>
  return
}

// -----

// Batch dimensions, several free and several contracted ones.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x5x40x64xf16>
// CHECK-COUNT-2: stablehlo.dot_general{{.*}} {xgpu.product = "wgmma"}
// CHECK-NEXT:    return
func.func @main(%x: tensor<3x5x40x64xf16>, %w: tensor<3x64x24xf16>, %y: tensor<40x8x16xf16>, %z: tensor<8x16x24xf16>) {
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [3] x [1] : (tensor<3x5x40x64xf16>, tensor<3x64x24xf16>) -> tensor<3x5x40x24xf16>
  %1 = stablehlo.dot_general %y, %z, contracting_dims = [1, 2] x [0, 1] : (tensor<40x8x16xf16>, tensor<8x16x24xf16>) -> tensor<40x24xf16>
  return
}

// -----

// Elements of 8 bits, of two types too, and of 32, along the contracted dimension in memory.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32>
// CHECK-COUNT-8: stablehlo.dot_general{{.*}} {xgpu.product = "wgmma"}
// CHECK-NEXT:    return
func.func @main(%x: tensor<64x64xf32>, %e: tensor<48x64xf8E4M3FN>, %f: tensor<64x64xf8E5M2>, %z: tensor<64x64xi8>, %u: tensor<64x64xui8>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.dot_general %e, %e, contracting_dims = [1] x [1] : (tensor<48x64xf8E4M3FN>, tensor<48x64xf8E4M3FN>) -> tensor<48x48xf8E4M3FN>
  %3 = stablehlo.dot_general %e, %f, contracting_dims = [1] x [1] : (tensor<48x64xf8E4M3FN>, tensor<64x64xf8E5M2>) -> tensor<48x64xbf16>
  %4 = stablehlo.dot_general %z, %z, contracting_dims = [1] x [1] : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi32>
  %5 = stablehlo.dot_general %u, %u, contracting_dims = [1] x [1] : (tensor<64x64xui8>, tensor<64x64xui8>) -> tensor<64x64xui8>
  %6 = stablehlo.dot_general %z, %u, contracting_dims = [1] x [1] : (tensor<64x64xi8>, tensor<64x64xui8>) -> tensor<64x64xi32>
  %7 = stablehlo.dot_general %z, %z, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi32>
  return
}

// -----

// The same elements otherwise in memory.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32>
// CHECK-NOT:   xgpu.product
// CHECK:       return
func.func @main(%x: tensor<64x64xf32>, %e: tensor<64x64xf8E4M3FN>, %z: tensor<64x64xi8>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %e, %e, contracting_dims = [0] x [1] : (tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>) -> tensor<64x64xf32>
  %2 = stablehlo.dot_general %z, %z, contracting_dims = [0] x [0] : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi32>
  return
}

// -----

// More precision than tensor cores have for these elements, and less.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32>
// CHECK-NOT:   xgpu.product
// CHECK:       return
func.func @main(%x: tensor<64x64xf32>, %e: tensor<64x64xf8E4M3FN>, %b: tensor<64x64xbf16>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [DEFAULT, HIGH] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.dot_general %e, %e, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>) -> tensor<64x64xf32>
  %4 = stablehlo.dot_general %b, %b, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf64>
  return
}

// -----

// Elements that warp groups do not multiply, or not with each other, and sums that they do not have.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf64>
// CHECK-NOT:   xgpu.product
// CHECK:       return
func.func @main(%y: tensor<64x64xf64>, %z: tensor<64x64xi8>, %a: tensor<64x64xbf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xi16>, %e: tensor<64x64xf8E4M3>) {
  %1 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [1] : (tensor<64x64xf64>, tensor<64x64xf64>) -> tensor<64x64xf64>
  %2 = stablehlo.dot_general %z, %z, contracting_dims = [1] x [1] : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi64>
  %3 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xf16>) -> tensor<64x64xf32>
  %4 = stablehlo.dot_general %c, %c, contracting_dims = [1] x [1] : (tensor<64x64xi16>, tensor<64x64xi16>) -> tensor<64x64xi32>
  %5 = stablehlo.dot_general %e, %e, contracting_dims = [1] x [1] : (tensor<64x64xf8E4M3>, tensor<64x64xf8E4M3>) -> tensor<64x64xf32>
  return
}

// -----

// Rows that are no multiple of 16 bytes apart: no boxes, and so warps. Nothing to multiply.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x65xbf16>
// CHECK-COUNT-2: stablehlo.dot_general{{.*}} {xgpu.product = "mma"}
// CHECK-NOT:   xgpu.product
// CHECK:       return
func.func @main(%x: tensor<64x65xbf16>, %y: tensor<65x64xbf16>, %u: tensor<64x64xbf16>, %v: tensor<64x12xbf16>, %a: tensor<64x0xbf16>, %b: tensor<0x64xbf16>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<64x65xbf16>, tensor<65x64xbf16>) -> tensor<64x64xbf16>
  %1 = stablehlo.dot_general %u, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x12xbf16>) -> tensor<64x12xbf16>
  %2 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x0xbf16>, tensor<0x64xbf16>) -> tensor<64x64xbf16>
  return
}

// -----

// A mark that was there goes.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32>
// CHECK-NOT:   xgpu.product
// CHECK:       return
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
