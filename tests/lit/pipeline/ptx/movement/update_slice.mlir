// RUN: xgpu compile %s | FileCheck %s

// Whole rows of a cache are replaced, in vectors; where they begin is read once.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-1: ld.global.nc.b32
// CHECK-NOT: {{bra|div|rem}}
// CHECK: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK-NOT: {{ld|st}}.global
// CHECK: ret;
func.func @main(%cache: tensor<8192x1024xbf16>, %rows: tensor<512x1024xbf16>, %at: tensor<i32>) -> tensor<8192x1024xbf16> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %cache, %rows, %at, %zero
      : (tensor<8192x1024xbf16>, tensor<512x1024xbf16>, tensor<i32>, tensor<i32>) -> tensor<8192x1024xbf16>
  return %0 : tensor<8192x1024xbf16>
}
