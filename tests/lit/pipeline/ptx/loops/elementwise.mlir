// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// Where the sizes divide, every access is one of 16 bytes, and nothing branches, divides or computes an index in 64 bits.

// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-4: mul.rn.bf16x2
// CHECK-NOT: mul.rn.bf16
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// NONE-NOT: {{\.global\.(nc\.)?[bv][^4]}}
// NONE-NOT: {{bra|div|rem|mul\.hi|(mul\.lo|mad\.lo|shl|shr)\.[bsu]64}}
func.func @main(
    %x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>, %a: tensor<2048x1024xbf16>, %b: tensor<2048x1024xbf16>
) -> (tensor<1024x1024xf32>, tensor<2048x1024xbf16>) {
  %0 = stablehlo.add %x, %y : tensor<1024x1024xf32>
  %1 = stablehlo.multiply %0, %y : tensor<1024x1024xf32>
  %2 = stablehlo.multiply %a, %b : tensor<2048x1024xbf16>
  return %1, %2 : tensor<1024x1024xf32>, tensor<2048x1024xbf16>
}
