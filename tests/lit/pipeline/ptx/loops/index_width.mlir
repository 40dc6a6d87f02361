// RUN: xgpu compile %s | FileCheck %s

// Indices below 2^32 are computed in 32 bits. Divisions by constants are multiplications, and only the address, in bytes,
// has 64 bits.
// CHECK-LABEL: .entry fusion_0(
// CHECK-NOT: {{div|rem|(mul|mad|shr|shl)\.(lo\.|hi\.)?[bsu]64}}
// CHECK: mul.hi.u32
// CHECK-NOT: {{div|rem|(mul|mad|shr|shl)\.(lo\.|hi\.)?[bsu]64}}
// CHECK: ret;

// Larger ones need 64 bits.
// CHECK-LABEL: .entry fusion_1(
// CHECK-NOT: {{div|rem}}
// CHECK: mul.hi.u64
// CHECK-NOT: {{div|rem}}
// CHECK: ret;
func.func @main(
    %x: tensor<1023x1021x7xf32>, %y: tensor<7x1021x1023xf32>, %small: tensor<1023xf32>
) -> (tensor<7x1021x1023xf32>, tensor<70000x70001x3xf32>) {
  %0 = stablehlo.transpose %x, dims = [2, 1, 0] : (tensor<1023x1021x7xf32>) -> tensor<7x1021x1023xf32>
  %1 = stablehlo.add %0, %y : tensor<7x1021x1023xf32>
  %2 = stablehlo.slice %small [0:3] : (tensor<1023xf32>) -> tensor<3xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [2] : (tensor<3xf32>) -> tensor<70000x70001x3xf32>
  return %1, %3 : tensor<7x1021x1023xf32>, tensor<70000x70001x3xf32>
}
