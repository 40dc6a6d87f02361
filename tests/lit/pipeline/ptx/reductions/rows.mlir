// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// A lane holds 32 elements of a row of 1024: it reads them once, eight at a time, whichever of the three walks needs them,
// and stores eight at a time. The quotient is one inverse of the row's sum.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-4: ld.global.nc.v4.b32
// CHECK-NOT: ld.
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK-NOT: ld.
// CHECK-COUNT-32: ex2.approx.ftz.f32
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK-NOT: ld.
// CHECK-COUNT-1: rcp.approx.ftz.f32
// CHECK-NOT: {{ld\.|rcp|ex2}}
// CHECK-COUNT-4: st.global.v4.b32
// CHECK-NOT: st.
// CHECK: ret;

// NONE-NOT: {{div|bra|bar\.sync|\.shared|\.local|st\.global\.b}}
func.func @main(%x: tensor<65536x1024xbf16>) -> tensor<65536x1024xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %wide = stablehlo.convert %x : (tensor<65536x1024xbf16>) -> tensor<65536x1024xf32>
  %0 = stablehlo.reduce(%wide init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<65536x1024xf32>, tensor<f32>) -> tensor<65536xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<65536xf32>) -> tensor<65536x1024xf32>
  %2 = stablehlo.subtract %wide, %1 : tensor<65536x1024xf32>
  %3 = stablehlo.exponential %2 : tensor<65536x1024xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<65536x1024xf32>, tensor<f32>) -> tensor<65536xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<65536xf32>) -> tensor<65536x1024xf32>
  %6 = stablehlo.divide %3, %5 : tensor<65536x1024xf32>
  %7 = stablehlo.convert %6 : (tensor<65536x1024xf32>) -> tensor<65536x1024xbf16>
  return %7 : tensor<65536x1024xbf16>
}
