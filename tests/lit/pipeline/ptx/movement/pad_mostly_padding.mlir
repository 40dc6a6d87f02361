// RUN: xgpu compile %s | FileCheck %s

// A thread in the padding reads nothing: whole blocks are there, so that the branch is theirs.
// CHECK-LABEL: .entry fusion_0(
// CHECK: mov.u32 [[BLOCK:%r[0-9]+]], %ctaid.x;
// CHECK-NEXT: add.s32 [[FROM:%r[0-9]+]], [[BLOCK]], -3200;
// CHECK-NEXT: setp.gt.u32 [[OUTSIDE:%p[0-9]+]], [[FROM]], 255;
// CHECK-NOT: ld.global
// CHECK: @[[OUTSIDE]] bra [[STORE:\$L__[A-Z0-9_]+]];
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: [[STORE]]:
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK: ret;

// Of 16-bit elements as well, also reversed along both dimensions.
// CHECK-LABEL: .entry fusion_1(
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
// CHECK-LABEL: .entry fusion_2(
// CHECK-NOT: bra
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|bra}}
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
func.func @main(
    %x: tensor<8x16384xf32>, %y: tensor<16384x1000xbf16>
) -> (tensor<16384x16384xf32>, tensor<16384x1024xbf16>, tensor<16384x1000xbf16>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.pad %x, %one, low = [100, 0], high = [16276, 0], interior = [0, 0]
    : (tensor<8x16384xf32>, tensor<f32>) -> tensor<16384x16384xf32>
  %1 = stablehlo.pad %y, %zero, low = [0, 8], high = [0, 16], interior = [0, 0]
    : (tensor<16384x1000xbf16>, tensor<bf16>) -> tensor<16384x1024xbf16>
  %2 = stablehlo.reverse %y, dims = [0, 1] : tensor<16384x1000xbf16>
  return %0, %1, %2 : tensor<16384x16384xf32>, tensor<16384x1024xbf16>, tensor<16384x1000xbf16>
}
