// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// Four rows at a time, 16 bytes of each; one barrier; what the warps have comes from shared memory.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-4: ld.global.nc.v4.b32
// CHECK: bra
// CHECK: shfl.sync.bfly.b32
// CHECK-COUNT-4: st.shared.b32
// CHECK: bar.sync
// CHECK-COUNT-16: ld.shared.b32
// CHECK: st.global.b32
// CHECK-NOT: bar.sync
// CHECK: ret;

// Columns enough for all threads: vectors in, vectors out.
// CHECK-LABEL: .entry fusion_1(
// CHECK-NOT: {{\.shared|shfl|bar\.sync}}
// CHECK-COUNT-12: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK: ret;

// NONE-NOT: {{div|rem|mul\.hi|ld\.global\.nc\.b}}
func.func @main(
    %x: tensor<16384x16384xf32>, %y: tensor<256x12x8192xbf16>
) -> (tensor<16384xf32>, tensor<256x8192xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16384x16384xf32>, tensor<f32>) -> tensor<16384xf32>
  %1 = stablehlo.reduce(%y init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<256x12x8192xbf16>, tensor<bf16>) -> tensor<256x8192xbf16>
  return %0, %1 : tensor<16384xf32>, tensor<256x8192xbf16>
}
