// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// A thread reads and writes 16 bytes at once, on both sides of the tile; elements are turned when they leave it.
// CHECK-LABEL: .entry fusion_0(
// CHECK: ld.global.nc.v4.b32
// CHECK: st.shared.v4.b32
// CHECK: bar.sync
// CHECK-COUNT-4: ld.shared.b32
// CHECK: st.global.v4.b32
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK: ld.global.nc.v4.b32
// CHECK: st.shared.v4.b32
// CHECK: bar.sync
// CHECK-COUNT-8: ld.shared.b16
// CHECK: st.global.v4.b32
// CHECK: ret;

// Sizes divide: there is no check of bounds, and no division.
// NONE-NOT: {{bra|div|rem|mul\.hi|ld\.global\.nc\.b|st\.global\.b}}
func.func @main(
    %x: tensor<1024x2048xf32>, %y: tensor<4x1024x256xbf16>
) -> (tensor<2048x1024xf32>, tensor<4x256x1024xbf16>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<1024x2048xf32>) -> tensor<2048x1024xf32>
  %1 = stablehlo.transpose %y, dims = [0, 2, 1] : (tensor<4x1024x256xbf16>) -> tensor<4x256x1024xbf16>
  return %0, %1 : tensor<2048x1024xf32>, tensor<4x256x1024xbf16>
}
