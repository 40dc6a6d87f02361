// RUN: xgpu compile %s | FileCheck %s

// Rows that start anywhere are read by aligned vectors all the same. One at either end is in part of another row: the
// elements of this row are read one by one, without a loop.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-3: ld.global.nc.b32
// CHECK-COUNT-16: ld.global.nc.v4.b32
// CHECK-COUNT-3: ld.global.nc.b32
// CHECK-NOT: ld.global
// CHECK: shfl.sync
// CHECK: ret;
func.func @main(%x: tensor<16381x16381xf32>) -> tensor<16381xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16381x16381xf32>, tensor<f32>) -> tensor<16381xf32>
  return %0 : tensor<16381xf32>
}
