// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// Accesses are of 16 bytes for elements of every size: a thread takes 16 of one byte, 2 of eight.

// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-COUNT-4: add.rn.f16x2
// CHECK-NOT: {{add\.rn\.f16|ld\.global}}
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_2(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// pred is one byte in memory.
// CHECK-LABEL: .entry fusion_3(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_4(
// CHECK-COUNT-2: ld.global.nc.v2.b64
// CHECK-COUNT-2: add.rn.f64
// CHECK-NOT: {{add\.rn\.f64|ld\.global}}
// CHECK: st.global.v2.b64
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_5(
// CHECK-COUNT-2: ld.global.nc.v2.b64
// CHECK-NOT: ld.global
// CHECK: st.global.v2.b64
// CHECK-NOT: .global
// CHECK: ret;

// NONE-NOT: {{\.global\.(nc\.)?(b|v2\.b[^6]|v4\.b[^3])}}
// NONE-NOT: {{bra|div|rem|mul\.hi}}
func.func @main(
    %f16: tensor<96x65536xf16>, %s8: tensor<104x65536xi8>, %u8: tensor<112x65536xui8>, %pred: tensor<128x65536xi1>,
    %f64: tensor<256x65536xf64>, %s64: tensor<512x65536xi64>
) -> (tensor<96x65536xf16>, tensor<104x65536xi8>, tensor<112x65536xui8>, tensor<128x65536xi1>,
      tensor<256x65536xf64>, tensor<512x65536xi64>) {
  %1 = stablehlo.reverse %f16, dims = [0] : tensor<96x65536xf16>
  %2 = stablehlo.add %f16, %1 : tensor<96x65536xf16>
  %3 = stablehlo.reverse %s8, dims = [0] : tensor<104x65536xi8>
  %4 = stablehlo.maximum %s8, %3 : tensor<104x65536xi8>
  %5 = stablehlo.reverse %u8, dims = [0] : tensor<112x65536xui8>
  %6 = stablehlo.maximum %u8, %5 : tensor<112x65536xui8>
  %7 = stablehlo.reverse %pred, dims = [0] : tensor<128x65536xi1>
  %8 = stablehlo.and %pred, %7 : tensor<128x65536xi1>
  %9 = stablehlo.reverse %f64, dims = [0] : tensor<256x65536xf64>
  %10 = stablehlo.add %f64, %9 : tensor<256x65536xf64>
  %11 = stablehlo.reverse %s64, dims = [0] : tensor<512x65536xi64>
  %12 = stablehlo.add %s64, %11 : tensor<512x65536xi64>
  return %2, %4, %6, %8, %10, %12 : tensor<96x65536xf16>, tensor<104x65536xi8>, tensor<112x65536xui8>,
    tensor<128x65536xi1>, tensor<256x65536xf64>, tensor<512x65536xi64>
}
