// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// A row for one warp or less: two loads of 16 bytes, shuffles, no shared memory and no barrier.
// CHECK-LABEL: .entry fusion_0(
// CHECK-NOT: .shared
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-COUNT-4: shfl.sync.bfly.b32
// CHECK-NOT: {{bar.sync|shfl.sync}}
// CHECK: ret;

// A row for several warps: all of a thread's loads without a branch between, one barrier.
// CHECK-LABEL: .entry fusion_1(
// CHECK: .shared .align 16 .b8 fusion_1__tile_0[16];
// CHECK-COUNT-16: ld.global.nc.v4.b32
// CHECK-COUNT-5: shfl.sync.bfly.b32
// CHECK: st.shared.b16
// CHECK: bar.sync
// CHECK: ld.shared.b16
// CHECK-NOT: bar.sync
// CHECK: ret;

// NONE-NOT: {{div|rem|mul\.hi|ld\.global\.nc\.b}}
func.func @main(
    %x: tensor<65536x128xf32>, %y: tensor<16384x16384xbf16>
) -> (tensor<65536xf32>, tensor<16384xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<65536x128xf32>, tensor<f32>) -> tensor<65536xf32>
  %1 = stablehlo.reduce(%y init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<16384x16384xbf16>, tensor<bf16>) -> tensor<16384xbf16>
  return %0, %1 : tensor<65536xf32>, tensor<16384xbf16>
}
